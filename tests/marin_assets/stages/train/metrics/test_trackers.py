"""The metrics of a training in TensorBoard and in Weights & Biases, as their own readers find them."""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.metrics import wandb_run
from marin_assets.stages.train.metrics.metrics import MetricsFile
from marin_assets.stages.train.metrics.trackers import open_trackers
from marin_assets.stages.train.specs.trackers import API_KEY, TensorBoard, Wandb, check_trackers, env_of
from marin_resources.storage.files import list_files, read_bytes
from marin_resources.storage.paths import join

pytestmark = pytest.mark.filterwarnings("default")  # of wandb


def test_an_attempt_that_resumes_leaves_each_step_once_in_tensorboard(any_prefix: str) -> None:
    output = join(any_prefix, "checkpoints/nano-1")
    for keep_up_to, steps in ((None, range(5)), (2, range(3, 8))):
        metrics = MetricsFile(join(output, "metrics.jsonl"), keep_up_to=keep_up_to)
        metrics.followers += open_trackers([TensorBoard()], output, metrics.rows)
        for step in steps:
            metrics.add(step, {"train/loss": 10.0 - step})
        if keep_up_to is None:
            metrics.save()  # and the process is gone
        else:
            metrics.close()
    found = [event for file in list_files(join(output, "tensorboard")) for event in events_in(read_bytes(file))]
    assert sorted(found) == [(step + 1, "train/loss", 10.0 - step) for step in range(8)]


@pytest.mark.long
def test_an_offline_run_is_below_the_output_for_wandb_to_sync(tmp_path: Path) -> None:
    output = str(tmp_path / "checkpoints/nano-1")
    for keep_up_to, steps in ((None, range(2)), (0, range(1, 3))):  # the second attempt resumes after step 0
        metrics = MetricsFile(join(output, "metrics.jsonl"), keep_up_to=keep_up_to)
        [log] = open_trackers([Wandb(project="nano", mode="offline")], output, metrics.rows)
        metrics.followers.append(log)
        for step in steps:
            metrics.add(step, {"train/loss": 10.0 - step})
            metrics.add(step, {"optim/learning_rate": 0.5})
        metrics.close()
    assert log.link == ("wandb", f"wandb sync {output}/wandb/offline-run-*")
    [file] = Path(output).glob("wandb/offline-run-*/run-nano-1-*.wandb")
    assert history_in(file) == [
        {"train/loss": f"{10 - step}", "optim/learning_rate": "0.5", "_step": f"{step + 1}"} for step in range(3)
    ]


@pytest.mark.long
def test_a_run_without_a_key_is_kept_offline_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv(API_KEY, raising=False)
    [log] = open_trackers([Wandb(project="nano")], str(tmp_path / "nano-2"), [])
    log.close()
    assert "WANDB_API_KEY is not set on this worker, so the W&B run is kept offline" in caplog.text
    assert list(tmp_path.glob("nano-2/wandb/offline-run-*/*.wandb"))


@pytest.mark.long
def test_a_service_that_does_not_answer_keeps_no_training_from_its_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(API_KEY, "a" * 40)
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(wandb_run, "INIT_TIMEOUT_S", 3)
    with caplog.at_level(logging.WARNING):
        [log] = open_trackers([Wandb(project="nano")], str(tmp_path / "nano-3"), [])
    log.add(0, {"train/loss": 1.0})
    log.close()
    assert "W&B does not answer" in caplog.text
    assert list(tmp_path.glob("nano-3/wandb/offline-run-*/*.wandb"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("tensorboard", "trackers has 'tensorboard', expected TensorBoard() or Wandb(project=…)."),
        (Wandb(project=""), "expected the name of a project"),
        (Wandb(project="x", mode="disabled"), "mode 'online' or 'offline'"),
    ],
)
def test_a_mistake_is_a_sentence(given: Any, said: str) -> None:
    with pytest.raises(TrainError) as raised:
        check_trackers([given])
    assert said in str(raised.value)


def test_the_key_reaches_the_worker_of_an_online_run_alone() -> None:
    assert env_of([TensorBoard(), Wandb(project="x")]) == (API_KEY,)
    assert env_of([TensorBoard(), Wandb(project="x", mode="offline")]) == ()


def events_in(data: bytes) -> Iterator[tuple[int, str, float]]:
    """The scalars of an event file: TensorFlow records of a length, its checksum, an event, its checksum."""
    from tensorboardX.proto.event_pb2 import Event

    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        event = Event.FromString(data[at + 12 : at + 12 + length])
        yield from ((event.step, value.tag, value.simple_value) for value in event.summary.value)
        at += length + 16


def history_in(file: Path) -> list[dict[str, str]]:
    """The rows of a small run: after 7 bytes, records of a checksum, a length, a kind, and a protobuf message."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, at, rows = file.read_bytes(), 7, []
    assert len(data) < 32_768, "one block, in which each record is whole"
    while at < len(data):
        (length,) = struct.unpack_from("<H", data, at + 4)
        record = Record.FromString(data[at + 7 : at + 7 + length])
        if record.WhichOneof("record_type") == "history":
            items = {item.key or item.nested_key[0]: item.value_json for item in record.history.item}
            rows.append({key: value.removesuffix(".0") for key, value in items.items() if key in KEPT})
        at += length + 7
    return rows


KEPT = ("train/loss", "optim/learning_rate", "_step")
