"""A sentence names a command that exists where it is printed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from marin_resources.configuration import command
from marin_resources.configuration.command import make_or
from marin_resources.configuration.settings import project_root

ROOT = project_root()
PACKAGES = ("marin_assets", "marin_resources", "marin_sensors")
OF_A_CHECKOUT = {"marin_assets/__init__.py"}
"""A distribution that is not installed is that of a checkout."""


def test_a_checkout_has_its_makefile_and_a_package_has_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = tmp_path / "a checkout"
    (checkout / "docs").mkdir(parents=True)
    monkeypatch.setattr(command, "checkout", lambda: checkout)
    monkeypatch.chdir(checkout)
    assert make_or("dev", "marin dev") == "make dev"
    monkeypatch.chdir(checkout / "docs")
    assert make_or("dev PORT=3001", "marin dev") == "make -C .. dev PORT=3001"
    monkeypatch.chdir(tmp_path)
    assert make_or("dev", "marin dev") == f"make -C '{checkout}' dev"
    monkeypatch.setattr(command, "checkout", lambda: None)
    assert make_or("dev", "marin dev") == "marin dev"


@pytest.mark.long
def test_no_other_sentence_names_a_target_of_the_makefile() -> None:
    targets = re.findall(r"^([a-z][a-z-]*|\.venv-[a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = re.compile(rf"\bmake ({'|'.join(map(re.escape, targets))})\b")
    found = [
        f"{path.relative_to(ROOT)}: {text}"
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        for text in texts(path)
        if named.search(text)
    ]
    assert [place for place in found if place.partition(":")[0] not in OF_A_CHECKOUT] == []


def texts(path: Path) -> Iterator[str]:
    """The strings of a file, but for docstrings."""
    tree = ast.parse(path.read_text())
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value
