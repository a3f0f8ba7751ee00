"""Every module, or the package it stands in, has tests at the same place below `tests/`."""

from __future__ import annotations

import ast

import pytest


@pytest.mark.long
def test_every_module_or_its_package_has_tests(source_files, root):
    package = root / "src" / "betimes"
    missing = []
    for path in source_files:
        functions = [
            node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)
        ]
        inside = path.relative_to(package)
        own = root / "tests" / inside.with_name(f"test_{path.name}")
        of_package = root / "tests" / inside.parent / f"test_{path.parent.name}.py"
        if functions and path.name != "__init__.py" and not own.exists() and not of_package.exists():
            missing.append(str(own.relative_to(root)))
    assert not missing


def test_every_test_file_of_a_package_has_its_module(test_files, root):
    package = root / "src" / "betimes"
    packages = {path.name for path in package.iterdir() if path.is_dir()}
    orphans = []
    for path in test_files:
        inside = path.relative_to(root / "tests")
        module = package / inside.with_name(inside.name.removeprefix("test_"))
        # A second file on one module, or a file on a package, is named after it: test_hub_under_stress.py.
        starts = [module.stem[:end] for end in range(len(module.stem) + 1)]
        places = [module.with_name(f"{start}.py") for start in starts if start]
        places += [module.with_name(start) for start in starts if start]
        known = any(place.exists() for place in places) or module.stem.startswith(module.parent.name)
        if inside.parts[0] in packages and not known:
            orphans.append(str(path.relative_to(root)))
    assert not orphans
