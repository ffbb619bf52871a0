"""What the doctor says of variables: names that nothing reads, values that are wrong, and where the others are from."""

from __future__ import annotations

from pathlib import Path

import pytest

from marin_resources.configuration.file import load_file
from marin_resources.configuration.table import SETTINGS
from marin_resources.doctor.finding import State
from marin_resources.doctor.variables import look


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for setting in SETTINGS:
        monkeypatch.delenv(setting.name, raising=False)
    path = tmp_path / "marin.toml"
    path.touch()
    monkeypatch.setenv("MARIN_CONFIG", str(path))
    return path


def test_each_value_has_its_source(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("lease_ttl_s = 60\nregion = 'eu'\n")
    monkeypatch.setenv("MARIN_UI_URL", "http://127.0.0.1:3000")
    load_file()
    found = [finding.sentence for finding in look()]
    assert found[0] == "from environment: MARIN_CONFIG, MARIN_UI_URL"
    assert found[1] == f"from '{file}': MARIN_LEASE_TTL_S, MARIN_REGION"
    assert found[2] == f"{len(SETTINGS) - 4} have their default"
    file.write_text("")
    load_file()


def test_each_mistake_is_a_finding(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_LEASE_TTL_S", "soon")
    monkeypatch.setenv("MARIN_LOG_FORMAT", "xml")
    monkeypatch.setenv("MARIN_PREFIXX", "outputs")
    wrong = [finding.sentence for finding in look() if finding.state is State.WRONG]
    assert len(wrong) == 3
    assert "MARIN_PREFIXX is set, and nothing reads it. Did you mean MARIN_PREFIX?" in wrong
