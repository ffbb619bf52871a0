"""A judge by a rule, and answers of two models."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rule_judge import write_judge_folder, write_rule_python

from marin_assets.inference.engine import TORCH, Engine
from marin_assets.step.values import unwrap_versioned_value


@pytest.fixture(scope="session")
def judge_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_judge_folder(tmp_path_factory.mktemp("judge"))


@pytest.fixture
def rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], tuple[Engine, Path]]:
    """A function of a rule's name: the engine of a judge by it, and the file with a line for each request."""

    def start(name: str) -> tuple[Engine, Path]:
        python, requests = write_rule_python(tmp_path / "rules", name)
        monkeypatch.setenv("MARIN_TORCH_PYTHON", str(python))
        return replace(unwrap_versioned_value(TORCH), max_length=None), requests

    return start


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """A function that writes rows to a folder of that name, and returns the folder."""

    def rows_of(name: str, rows: list[Mapping[str, Any]]) -> str:
        (tmp_path / name).mkdir()
        (tmp_path / name / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(tmp_path / name)

    return rows_of
