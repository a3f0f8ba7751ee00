"""Do names say what a thing does?"""

from __future__ import annotations

import ast

import pytest

EMPTY_WORDS = {"common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}


def test_no_module_has_a_name_that_says_nothing(source_files, test_files, root):
    found = [
        str(path.relative_to(root))
        for path in [*source_files, *test_files]
        if EMPTY_WORDS & set("_".join(path.relative_to(root).with_suffix("").parts).split("_"))
    ]
    assert not found


@pytest.mark.long
def test_no_class_has_a_name_that_says_nothing(source_files, root):
    found = []
    for path in source_files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                words = "".join(f"_{c.lower()}" if c.isupper() else c for c in node.name).split("_")
                if EMPTY_WORDS & set(words):
                    found.append(f"{path.relative_to(root)}:{node.lineno} {node.name}")
    assert not found


@pytest.mark.long
def test_every_test_is_named_by_a_sentence(test_files, root):
    found = []
    for path in test_files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                words = node.name.split("_")
                if words[0] != "test" or len([word for word in words[1:] if word]) < 3:
                    found.append(f"{path.relative_to(root)}:{node.lineno} {node.name}")
    assert not found, "a test's name is a sentence of three words or more"


@pytest.mark.long
def test_every_file_opens_with_what_it_is_for(source_files, test_files, root):
    found = [
        str(path.relative_to(root))
        for path in [*source_files, *test_files]
        if not (ast.get_docstring(ast.parse(path.read_text())) or "").strip()
    ]
    assert not found
