"""A model on the hub: all of its files, and a card that says what made it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from model_hub import ModelHub, model_hub

from marin_assets.stages.publish.model_card import model_card
from marin_assets.stages.publish.upload_model import UploadError, UploadModelConfig, upload_model
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.output.record import write_record
from marin_resources.types.record import Record

FILES = {
    "config.json": b'{"model_type": "llama"}',
    "tokenizer.json": b"{}",
    "model.safetensors": bytes(range(256)) * 100,
}
RECORD: dict[str, Any] = {
    "name": "checkpoints/nano",
    "identity": "abcdef123456",
    "version": {"config": {"seed": 7}},
    "dependencies": ["tokenized/nano-b89b9a"],
    "git": {"commit": "c0ffee", "dirty": False},
    "result": {"parameters": 360768, "steps": 20, "loss_end": 6.4001, "tokens_seen": 40960},
}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelHub]:
    import huggingface_hub.constants
    import huggingface_hub.utils._http as hub_http

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)  # tests are offline; loopback is not
    hub_http.reset_sessions()
    with model_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", hub.url)  # read once, by the first import
        monkeypatch.setenv("HF_TOKEN", hub.token)
        yield hub
    monkeypatch.undo()
    hub_http.reset_sessions()


@pytest.fixture
def training(tmp_path: Path) -> Path:
    folder = tmp_path / "nano-abcdef"
    for name, content in FILES.items():
        path = folder / "hf" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    write_record(str(folder), Record.from_dict(RECORD))
    return folder


def upload(training: Path, output: Path, **fields: Any) -> dict[str, Any]:
    given = {"repository": "lab/nano", "license": "apache-2.0", **fields}
    config = UploadModelConfig(training_path=str(training), output_path=str(output), **given)
    return upload_model(unwrap_versioned_value(config))


def test_all_files_and_a_card_of_the_record_are_there(hub: ModelHub, training: Path, tmp_path: Path) -> None:
    result = upload(training, tmp_path / "out", description="A small one.")
    stored = hub.files["lab/nano"]
    assert {name: stored[name] for name in FILES} == FILES
    assert hub.private["lab/nano"] is True
    card = stored["README.md"].decode()
    assert card.startswith("---\nlibrary_name: transformers\ntags:\n- marin\nlicense: apache-2.0\n---\n\n# nano\n")
    for line in ("A small one.", "| parameters | 360,768 |", "* commit: `c0ffee`", "* input: `tokenized/nano-b89b9a`"):
        assert line in card
    assert json.loads(card.partition("```json\n")[2].partition("```")[0]) == {"seed": 7}
    assert result["commit"] == hub.commits[-1]
    assert result["files"] == 4
    assert json.loads((tmp_path / "out/uploaded.json").read_text())["names"] == sorted([*FILES, "README.md"])
    assert (tmp_path / "out/README.md").read_text() == card


def test_the_same_upload_again_makes_no_commit(hub: ModelHub, training: Path, tmp_path: Path) -> None:
    first = upload(training, tmp_path / "out")
    assert upload(training, tmp_path / "again")["commit"] == first["commit"]
    assert len(hub.commits) == 1


def test_what_cannot_be_uploaded_is_a_sentence(
    hub: ModelHub, training: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UploadError, match="The repository is 'nano', expected 'owner/name'"):
        upload(training, tmp_path / "out", repository="nano")
    with pytest.raises(UploadError, match=r"exports/step-1' has no 'config\.json'"):
        upload(training, tmp_path / "out", model="exports/step-1")
    monkeypatch.setenv("HF_TOKEN", "hf_reads")
    with pytest.raises(UploadError, match=r"The hub refused the upload to 'lab/nano': .*401"):
        upload(training, tmp_path / "out")
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(UploadError, match=r"HF_TOKEN is not set, expected a token of the hub that may write"):
        upload(training, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_card_says_whose_loss_it_has_if_the_weights_were_averaged() -> None:
    averaged = {**RECORD, "version": {"config": {"loop.ema_beta": 0.99}}}
    assert "| validation loss of the weights that were averaged, nats a token | 6.4 |" in card_of(averaged)
    now = {**averaged, "result": {**RECORD["result"], "loss_end_unaveraged": 6.2}}
    for record in (now, RECORD):
        assert "| validation loss, nats a token | 6.4 |" in card_of(record)


def card_of(record: dict[str, Any]) -> str:
    return model_card(Record.from_dict(record), license=None, description=None)
