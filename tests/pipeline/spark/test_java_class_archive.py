"""Does Java take Spark's classes from an archive, and do without where there is none?"""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from betimes.pipeline.spark.java import Java, archive_file, find_java, reading_option, writing_option
from betimes.pipeline.spark.session import LOCAL_JAVA_OPTIONS, local_java_options

JAVA = Java(home=Path("/java"), version="17.0.2", origin="PATH")


@pytest.mark.long
def test_java_reads_what_it_wrote(tmp_path):
    java, archive = find_java(), tmp_path / "classes"
    for told in (writing_option, reading_option):  # there is nothing to read before it is written
        option = told(java, archive)
        command = [str(java.home / "bin" / "java"), *shlex.split(option), "-Xlog:class+load", "-version"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
    is_on_top = "SharedArchiveFile" in option  # of Java's own
    assert ("shared objects file (top)" if is_on_top else "shared objects file") in done.stdout


def test_without_an_archive_java_is_told_of_none(tmp_path):
    assert reading_option(JAVA, tmp_path / "missing") == ""
    assert local_java_options(JAVA) == LOCAL_JAVA_OPTIONS


def test_another_java_has_another_archive():
    others = (replace(JAVA, version="17.0.3"), replace(JAVA, home=Path("/other")))
    assert len({archive_file(java) for java in (JAVA, *others)}) == 3


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("17.0.2", ("SharedArchiveFile", "ArchiveClassesAtExit")),
        ("25", ("AOTCache", "AOTCacheOutput")),
        ("26-ea", ("AOTCache", "AOTCacheOutput")),
    ],
)
def test_each_java_is_told_in_its_own_words(tmp_path, version, words):
    archive, java = tmp_path / "classes", replace(JAVA, version=version)
    archive.touch()
    told = (reading_option(java, archive), writing_option(java, archive))
    assert told == tuple(f'-XX:{word}="{archive}"' for word in words)
