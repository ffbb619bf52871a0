"""Every name that a benchmark imports from this project exists: benchmarks run seldom, and modules move."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(ROOT.glob("tests/benchmarks/**/*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(ROOT / "tests/benchmarks").as_posix())
def test_every_name_that_a_benchmark_imports_exists(file: Path) -> None:
    missing = [name for module, name in _imports(file) if not _has(module, name)]
    assert missing == []


def _imports(file: Path) -> Iterator[tuple[str, str]]:
    """(module, name) of each import from this project, wherever it is in the file."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("marin_") and _is_here(node):
            yield from ((node.module, alias.name) for alias in node.names)


def _is_here(node: ast.ImportFrom) -> bool:
    """Whether the package is of this project, and not Marin's own."""
    return (ROOT / str(node.module).partition(".")[0]).is_dir()


def _has(module: str, name: str) -> bool:
    place = ROOT / module.replace(".", "/")
    is_module = (place / f"{name}.py").exists() or (place / name / "__init__.py").exists()
    return is_module or name in _names_in(
        place.with_suffix(".py") if place.with_suffix(".py").exists() else place / "__init__.py"
    )


@cache
def _names_in(file: Path) -> frozenset[str]:
    """The names that a module defines or imports."""
    if not file.exists():
        return frozenset()
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
    return frozenset(names)
