"""A public class name is defined once in the source: one word, one thing."""

from __future__ import annotations

import ast
from collections import defaultdict

import pytest


@pytest.mark.long
def test_every_public_class_name_is_defined_once(source_files, root):
    places = defaultdict(list)
    for path in source_files:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(root)))
    assert not {name: found for name, found in places.items() if len(found) > 1}
