"""The way through the code that docs/explanation/one-materialization.md lists is the real one."""

import ast
import re
from pathlib import Path

from pages import ROOT

PAGE = ROOT / "docs/explanation/one-materialization.md"
HOP = re.compile(r"^\|[ \d]*\| `(?P<file>[\w/]+\.py)` \| `(?P<name>\w+)` \|", re.MULTILINE)


def defined_in(file: Path) -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, kinds)}


def test_every_hop_is_a_function_of_its_file() -> None:
    hops = HOP.findall(PAGE.read_text())
    assert len(hops) > 30
    for file, function in hops:
        assert function in defined_in(ROOT / file), f"{file} has no {function}"


def test_each_file_is_visited_once_or_twice() -> None:
    files = [file for file, _ in HOP.findall(PAGE.read_text())]
    assert max(map(files.count, files)) <= 3, {file: files.count(file) for file in files if files.count(file) > 2}
    assert sum(files.count(file) > 2 for file in set(files)) <= 1  # the store: look, claim, publish
