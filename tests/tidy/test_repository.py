"""Are the lock, the documents and the changelog what they say they are?"""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

TEXT_ENDINGS = {"", ".cfg", ".lock", ".md", ".py", ".sh", ".toml", ".txt", ".yml", ".yaml"}
# Split, so that this file does not hold what it looks for.
MACHINE_PATHS = re.compile(
    "/" + "(root|home/[a-z]+|opt/pypi|opt/wheels|work/main|work/shared|Users/[a-z]+)" + r"\b"
)
INDEX_HOSTS = re.compile(
    "pypi" + r"\.org|files\.python" + "hosted|" + "index-" + "url|find-" + "links|extra-" + "index"
)


def kept_files(root: Path) -> list[Path]:
    """Return the files that are, or are about to be, in the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    paths = [root / line for line in listed.stdout.splitlines()]
    return [path for path in paths if path.suffix in TEXT_ENDINGS and path.is_file()]


@pytest.mark.long
def test_no_file_names_a_machine_or_a_package_index(root):
    found = []
    for path in kept_files(root):
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            allowed = path.name == "Makefile" and "--no-emit-" in line
            if (MACHINE_PATHS.search(line) or INDEX_HOSTS.search(line)) and not allowed:
                found.append(f"{path.relative_to(root)}:{number} {line.strip()[:80]}")
    assert not found


def test_the_lock_pins_every_package_with_a_hash(root):
    lines = (root / "requirements.lock").read_text().splitlines()
    names = [line for line in lines if line and not line.startswith(("#", " "))]
    assert len(names) > 20
    assert all("==" in line and line.endswith("\\") for line in names)
    others = [
        line for line in lines if line.startswith(" ") and not line.strip().startswith("--hash=sha256:")
    ]
    assert not others


def test_the_lock_holds_everything_the_project_asks_for(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    asked = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *extras["dev"],
        *extras["bench"],
    ]
    locked = {
        line.split("==")[0] for line in (root / "requirements.lock").read_text().splitlines() if "==" in line
    }
    assert {re.split(r"[<>=\[ ]", each)[0] for each in asked} <= locked


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"])
def test_every_command_a_document_mentions_exists(root, document):
    from betimes.cli.app import command_names

    text = (root / document).read_text()
    targets = set(re.findall(r"^([a-z]+):", (root / "Makefile").read_text(), re.MULTILINE))
    code = "\n".join(re.findall(r"`[^`\n]+`|^```.*?^```", text, re.MULTILINE | re.DOTALL))
    assert set(re.findall(r"\bmake ([a-z]+)", code)) <= targets
    assert set(re.findall(r"(?:^|[`$/ ])betimes ([a-z]+)", code, re.MULTILINE)) <= set(command_names())


def test_every_change_is_one_small_file_of_its_format(root):
    changes = [path for path in (root / "changelog.d").iterdir() if path.name != "README.md"]
    assert changes or "## 0" in (root / "CHANGELOG.md").read_text()
    for path in changes:
        assert re.fullmatch(r"[a-z0-9-]+\.(added|changed|fixed|removed)\.md", path.name), path.name
        text = path.read_text().strip()
        assert text, path.name
        assert len(text.splitlines()) <= 12, path.name
        assert text[-1] in ".!?`", path.name
