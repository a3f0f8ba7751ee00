"""The packages from the model to the five papers use no clock, file or chance, not even indirectly.

The import contract sees modules; this sees what is reached through them: `np.random`, `open(...)`.
"""

from __future__ import annotations

import ast

import pytest

PURE_PACKAGES = (
    "model",
    "kernels",
    "language",
    "matching",
    "routing",
    "scheduling",
    "prediction",
    "replay",
    "reservations",
    "peers",
)
FORBIDDEN_CALLS = {"open", "input", "print", "exec", "eval", "breakpoint", "__import__"}
# Files and chance hidden in numpy.
FORBIDDEN_ATTRIBUTES = {"random", "fromfile", "genfromtxt", "loadtxt", "memmap", "save", "savetxt", "tofile"}


@pytest.mark.long
def test_pure_packages_reach_no_clock_file_or_chance(root):
    found = []
    for package in PURE_PACKAGES:
        for path in sorted((root / "src" / "betimes" / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                problem = impurity(node)
                if problem:
                    found.append(f"{path.relative_to(root)}:{getattr(node, 'lineno', 0)} {problem}")
    assert not found


def impurity(node: ast.AST) -> str | None:
    """Return what is wrong with a node of a pure package, if anything."""
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in FORBIDDEN_CALLS:
            return f"{name}(...)"
        case ast.Attribute(value=ast.Name(id="np" | "numpy" as name), attr=attr) if (
            attr in FORBIDDEN_ATTRIBUTES
        ):
            return f"{name}.{attr}"
        case ast.ImportFrom(module=str(module)) if module.startswith("numpy.random"):
            return f"from {module}"
        case ast.Import(names=names) if any(each.name.startswith("numpy.random") for each in names):
            return "import numpy.random"
    return None


def test_the_check_sees_what_it_is_for():
    for bad in (
        "np.random.default_rng()",
        "open('x')",
        "from numpy.random import Generator",
        "np.fromfile('x')",
    ):
        assert any(impurity(node) for node in ast.walk(ast.parse(bad))), bad
    assert not any(impurity(node) for node in ast.walk(ast.parse("generator.random(3)")))
