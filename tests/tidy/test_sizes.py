"""Functions stay short; sizes of files and folders are reported by `make lint` and enforced by nothing."""

from __future__ import annotations

import ast

import pytest

FUNCTION_LINES_MAX = 60


@pytest.mark.long
def test_no_function_is_longer_than_a_screen(source_files, root):
    found = []
    for path in source_files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                lines = node.end_lineno - node.lineno + 1
                if lines > FUNCTION_LINES_MAX:
                    found.append(f"{path.relative_to(root)}:{node.lineno} {node.name}: {lines} lines")
    assert not found
