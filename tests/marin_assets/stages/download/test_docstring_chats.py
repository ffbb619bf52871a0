"""Chats and preferences of the standard library's docstrings."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from marin_assets.documents import read_rows
from marin_assets.documents.chats.adapters import ADAPTERS
from marin_assets.documents.chats.preferences import PREFERENCE_ADAPTERS
from marin_assets.documents.position import POSITIONS, position
from marin_assets.stages.download.docstring_chats import (
    Described,
    DocstringChatsConfig,
    choose_evenly,
    docstring_chats,
    first_sentence,
    is_an_answer,
)
from marin_assets.stages.download.pydoc import PythonVersionError
from marin_assets.step.values import unwrap_versioned_value, versioned


def made(output: Path, **fields: Any) -> dict[str, int]:
    return docstring_chats(unwrap_versioned_value(DocstringChatsConfig(output_path=str(output), **fields)))


def rows_of(output: Path, kind: str) -> dict[str, Any]:
    return {row["id"]: row for _, row in read_rows(f"{output}/{kind}/rows.jsonl.zst") if isinstance(row, dict)}


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    """The output without a limit, and its result."""
    output = tmp_path_factory.mktemp("docstrings")
    return output, made(output)


def test_a_question_is_answered_by_the_first_sentence_of_a_docstring(everything: tuple[Path, dict[str, int]]) -> None:
    output, result = everything
    chats, preferences = rows_of(output, "chats"), rows_of(output, "preferences")
    assert result["chats"] == result["preferences"] == len(chats) == len(preferences) > 1000
    question, answer = ADAPTERS["openai"].read(chats["shutil.copytree"])
    assert question == {"role": "user", "content": "What does shutil.copytree do?"}
    assert answer["content"] == "Recursively copy a directory tree and return the destination directory."
    assert chats["functools.partialmethod"]["messages"][0]["content"] == "What is functools.partialmethod?"
    assert len({row["messages"][1]["content"] for row in chats.values()}) == len(chats), "each answer is one's own"


def test_what_is_rejected_goes_on_after_the_answer(everything: tuple[Path, dict[str, int]]) -> None:
    for row in rows_of(everything[0], "preferences").values():
        chosen, rejected = PREFERENCE_ADAPTERS["answers"].read(row)
        assert rejected[1]["content"].startswith(f"{chosen[1]['content']} ")


@pytest.mark.long  # 900 files are parsed
def test_the_same_python_makes_the_same_bytes(everything: tuple[Path, dict[str, int]], tmp_path: Path) -> None:
    made(tmp_path)
    for kind in ("chats", "preferences"):
        one, other = ((folder / kind / "rows.jsonl.zst").read_bytes() for folder in (everything[0], tmp_path))
        assert one == other


def test_a_limit_spreads_over_the_modules() -> None:
    found = [Described(f"{module}.function_{i}", False, "It does this.") for module in "abcdef" for i in range(10)]
    assert [one.name[0] for one in choose_evenly(found, 6)] == list("abcdef")
    assert choose_evenly(found, None) == found


def test_the_questions_of_the_recipe_are_held_out(everything: tuple[Path, dict[str, int]]) -> None:
    recipe = importlib.import_module("marin_assets.experiments.recipes.chat")
    rows = rows_of(everything[0], "chats").items()
    held_out = {row["messages"][0]["content"] for name, row in rows if position(name) < 0.1 * POSITIONS}
    assert held_out >= set(recipe.QUESTIONS)


def test_another_python_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PythonVersionError, match=r"requests the documentation of Python '2\.7\.18'"):
        made(tmp_path, python_version=versioned("2.7.18"))


@pytest.mark.parametrize(
    ("docstring", "sentence"),
    [
        ("Remove a\n    directory tree. And more.\n\nMore.", "Remove a directory tree."),
        ("No end here\n\nBut here.", ""),
        ("", ""),
        ("Return x.y of it.", "Return x.y of it."),
    ],
)
def test_the_first_sentence_is_on_one_line(docstring: str, sentence: str) -> None:
    assert first_sentence(docstring) == sentence


@pytest.mark.parametrize(
    "text", ["Too short.", "join(a, b) joins two paths.", "See a, b, c, e.g.", "Gibt Größe von allem."]
)
def test_what_is_no_answer(text: str) -> None:
    assert not is_an_answer(text)
