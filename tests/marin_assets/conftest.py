"""A folder of experiments with one of toy steps."""

from __future__ import annotations

import textwrap
import uuid
from pathlib import Path

import pytest

import marin_assets.experiments

EXPERIMENT = """
from toy_steps import toy

def steps():
    data = toy("data")
    tokens = toy("tokens", reads=data)
    return [data, tokens, toy("model", reads=tokens), toy("database")]
"""


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of the one experiment in the folder."""
    folder = tmp_path / "experiments"
    folder.mkdir()
    name = f"toys_{uuid.uuid4().hex[:8]}"
    (folder / f"{name}.py").write_text(textwrap.dedent(EXPERIMENT))
    monkeypatch.setattr(marin_assets.experiments, "__path__", [str(folder)])
    monkeypatch.setenv("MARIN_PREFIX", "")  # a command sets it; the test's end sets it back
    return name
