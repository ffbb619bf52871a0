"""`.ci/words.py` finds the words that are wrong in every sentence where people read them, and nowhere else."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from pages import ROOT


@pytest.fixture(scope="module")
def words() -> ModuleType:
    spec = importlib.util.spec_from_file_location("words", ROOT / ".ci/words.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "text", "line", "word"),
    [
        ("a.py", '"""It goes on."""\n', 1, "goes on"),
        ("a.py", '"""A page.\n\nTells what broke.\n"""\n', 3, "Tells"),
        ("a.py", 'def f(name):\n    raise ValueError(f"{name} is begun " "anew.")\n', 2, "anew"),
        ("a.py", 'def f(name):\n    return f"Run {name} again: it goes " f"on from {name}."\n', 2, "goes on"),
        ("a.py", "x = 1  # what lies there\n", 1, "lies there"),
        ("a.md", "# A page\n\nThe run went\non.\n", 3, "went\non"),
        ("a.md", "# A page\n\nIt is mended by a run.\n", 3, "mended"),
        ("a.md", "Run `tell` of [a page](be-told.md).\n\n```text\ngoes on\n```\n", 0, ""),
        ("a.py", 'TOLD = {"told": "anew"}\n', 0, ""),
        ("a.py", '"""The story of a fortune-teller, and of what is untold."""\n', 0, ""),
    ],
)
def test_a_word_is_found_in_a_sentence(
    words: ModuleType, tmp_path: Path, name: str, text: str, line: int, word: str
) -> None:
    (tmp_path / name).write_text(text)
    found = list(words.wrong_places(tmp_path / name))
    assert [(at, sentence.partition(": ")[0]) for at, sentence in found] == ([(line, repr(word))] if word else [])


def test_the_help_of_a_verb_is_a_text_that_is_printed(words: ModuleType, tmp_path: Path) -> None:
    docstring, of_verb = '"""Say what it goes on with."""\n', "def add_options(parser):\n    pass\n"
    (tmp_path / "a.py").write_text(docstring)
    (tmp_path / "verb.py").write_text(docstring + of_verb)
    assert [line for line, _ in words.places(tmp_path / "a.py")] == [1, 1]
    assert not list(words.places(tmp_path / "verb.py"))
    assert [sentence for _, sentence in words.wrong_places(tmp_path / "verb.py")] == ["'goes on': use continue, resume"]


def test_no_file_is_called_by_a_participle_or_a_pronoun(words: ModuleType, tmp_path: Path) -> None:
    for name in ("listed.py", "found.py", "file_lists.py", "listing.py"):
        (tmp_path / name).write_text('"""A list."""\n')
    named = [path.name for path in sorted(tmp_path.iterdir()) if list(words.places(path))]
    assert named == ["found.py", "listed.py"]
