"""Which files do the tidy tests look at?"""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def source_files(root) -> list[Path]:
    return sorted((root / "src" / "betimes").rglob("*.py"))


@pytest.fixture(scope="session")
def test_files(root) -> list[Path]:
    return sorted((root / "tests").rglob("test_*.py"))
