"""Packages, the folders below the three top-level ones: each describes itself, and the trees on pages show what
exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from pages import PAGES, ROOT

TOP = [ROOT / package for package in ("marin_assets", "marin_resources", "marin_sensors")]
PACKAGES = sorted({path.parent for top in TOP for path in top.rglob("*.py")})
SENTENCE = re.compile(r"\w.*\s.*[\w`')]\.(\s|$)", re.DOTALL)
"""Two words or more, and a full stop."""
WITH_TREE = [page for page in PAGES if "<!-- tree -->" in page.read_text()]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("package", PACKAGES, ids=name)
def test_the_init_of_every_package_describes_it_in_a_sentence(package: Path) -> None:
    init = package / "__init__.py"
    assert init.is_file(), f"{name(package)} has no __init__.py. Add one: its purpose, and what it may import."
    docstring = ast.get_docstring(ast.parse(init.read_text())) or ""
    assert SENTENCE.search(docstring), (
        f"{name(init)} has the docstring {docstring!r}, expected a sentence: what the package is for, and what it may "
        "import."
    )


@pytest.mark.parametrize("page", WITH_TREE, ids=name)
def test_everything_in_the_tree_exists(page: Path) -> None:
    for path in tree(page.read_text()):
        assert (ROOT / path).exists(), f"{name(page)} has {path!r} in its tree, which does not exist"


def test_the_readme_has_a_tree() -> None:
    shown = tree((ROOT / "README.md").read_text())
    assert {"marin_assets/", "marin_resources/", "marin_sensors/", "marin_assets/stages/filter/"} <= set(shown)


@pytest.mark.parametrize("page", WITH_TREE, ids=name)
def test_every_package_is_in_the_tree(page: Path) -> None:
    """A tree that shows one package of a folder shows all of them."""
    shown = {path.rstrip("/") for path in tree(page.read_text()) if path.endswith("/")}
    packages = {name(package) for package in PACKAGES} - {name(top) for top in TOP}
    opened = {path for path in shown if any(package.rpartition("/")[0] == path for package in shown & packages)}
    expected = {package for package in packages if package.rpartition("/")[0] in opened}
    assert expected <= shown, f"{name(page)} lacks {sorted(expected - shown)} in its tree"


def tree(text: str) -> list[str]:
    """The paths in the blocks after `<!-- tree -->`, nested by their indentation."""
    paths: list[str] = []
    for block in re.findall(r"<!-- tree -->\n```text\n(.*?)```", text, re.DOTALL):
        above: list[tuple[int, str]] = []
        for line in block.splitlines():
            indent, word = len(line) - len(line.lstrip()), line.split()[0]
            above = [(depth, folder) for depth, folder in above if depth < indent]
            paths.append("".join(folder for _, folder in above) + word)
            if word.endswith("/"):
                above.append((indent, word))
    return paths
