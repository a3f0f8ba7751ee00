"""Has every module with functions a test file of the same name?"""

from __future__ import annotations

import ast

import pytest


@pytest.mark.long
def test_every_module_with_functions_has_its_test_file(source_files, root):
    package = root / "src" / "betimes"
    missing = []
    for path in source_files:
        functions = [
            node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)
        ]
        mirrored = root / "tests" / path.relative_to(package).with_name(f"test_{path.name}")
        if functions and path.name != "__init__.py" and not mirrored.exists():
            missing.append(str(mirrored.relative_to(root)))
    assert not missing


def test_every_test_file_of_a_room_has_its_module(test_files, root):
    package = root / "src" / "betimes"
    rooms = {path.name for path in package.iterdir() if path.is_dir()}
    orphans = []
    for path in test_files:
        inside = path.relative_to(root / "tests")
        module = package / inside.with_name(inside.name.removeprefix("test_"))
        # A second file on one module is named after it: test_filters_agree.py on filters.py.
        starts = [module.stem[:end] for end in range(len(module.stem) + 1)]
        known = any(module.with_name(f"{start}.py").exists() for start in starts if start)
        if inside.parts[0] in rooms and not known:
            orphans.append(str(path.relative_to(root)))
    assert not orphans
