"""The metrics of a training in TensorBoard and in Weights & Biases, as their own readers find them."""

from __future__ import annotations

import dataclasses
import logging
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from marin_assets.defaults import default_train, grid
from marin_assets.stages.train.config import LlamaSpec, TrainLmConfig
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.metrics import trackers, wandb_run
from marin_assets.stages.train.metrics.metrics import MetricsFile, read_metrics
from marin_assets.stages.train.metrics.trackers import open_trackers
from marin_assets.stages.train.metrics.wandb_run import run_id
from marin_assets.stages.train.specs.trackers import API_KEY, TensorBoard, Wandb, check_trackers, env_of
from marin_assets.stages.train.train_lm import train_lm
from marin_assets.step.values import unwrap_versioned_value
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


@pytest.mark.long
def test_a_step_of_a_sweep_over_two_fields_has_a_run(inputs: Any, tmp_path: Path) -> None:
    base = default_train(
        "sweep",
        {},
        LlamaSpec(max_seq_len=32, hidden_dim=32, intermediate_dim=64, num_layers=1, num_heads=1),
        TrainLmConfig(
            components={},
            tokenizer_path=inputs.tokenizer_path,
            num_train_steps=3,
            train_batch_size=4,
            max_eval_batches=1,
            trackers=(TensorBoard(), Wandb(project="nano", mode="offline", tags=("sweep",))),
        ),
    )
    [(label, point)] = grid(base, {"optimizer.learning_rate": [0.003], "seed": [1]}).items()
    assert label == "learning_rate=0.003,seed=1"
    output = tmp_path / f"{point.step.name}-abc123"
    given = {"components": inputs.components, "output_path": str(output)}
    result = train_lm(unwrap_versioned_value(dataclasses.replace(point.step.config, **given)))
    assert set(result["links"]) == {"tensorboard", "wandb"}
    [file] = output.glob("wandb/offline-run-*/run-learning_rate=0.003_seed=1-abc123-*.wandb")
    assert file.stat().st_size > 1000


@pytest.mark.long
def test_wandb_takes_the_id_of_any_output() -> None:
    import wandb

    names = ["a=1,b=2-abc123", "it's:a;b#c?d-abc123", "x" * 300, "nano-1", "a b-1"]
    for name in names:
        wandb.Settings(run_id=run_id(f"/p/checkpoints/{name}"))
    ids = {run_id(f"/p/checkpoints/{name}") for name in [*names, "a=1_b=2-abc123", "x" * 299]}
    assert len(ids) == len(names) + 2, "the digest is of the whole path"


def test_the_id_of_a_run_is_as_before_where_wandb_took_it() -> None:
    assert run_id("/p/checkpoints/lr=0.1-abc123") == "lr=0.1-abc123-0783a57e"


class Careless:
    """A tracker that fails at one of its calls."""

    link = ("careless", "nowhere")

    def __init__(self, fails_at: str) -> None:
        self.fails_at, self.calls = fails_at, list[str]()
        self.call("open")

    def call(self, name: str) -> None:
        self.calls.append(name)
        if name == self.fails_at:
            raise RuntimeError("the service is away")

    def add(self, step: int, numbers: Any) -> None:
        self.call("add")

    def save(self) -> None:
        self.call("save")

    def close(self) -> None:
        self.call("close")


@pytest.mark.parametrize(
    ("fails_at", "calls"),
    [
        ("open", []),
        ("add", ["open", "add", "close"]),
        ("save", ["open", "add", "save", "close"]),
        ("close", ["open", "add", "save", "add", "save", "close"]),
    ],
)
def test_no_error_of_a_tracker_ends_a_training(
    fails_at: str, calls: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made: list[Careless] = []

    def open_one(*_: Any) -> Careless:
        made.append(tracker := Careless(fails_at))
        return tracker

    monkeypatch.setattr(trackers, "TensorBoardLog", open_one)
    metrics = MetricsFile(f"{tmp_path}/metrics.jsonl")
    metrics.followers += open_trackers([TensorBoard()], str(tmp_path), metrics.rows)
    for step in range(2):
        metrics.add(step, {"train/loss": 1.0})
        if step == 0:
            metrics.save()
    metrics.close()
    assert [call for tracker in made for call in tracker.calls] == calls
    assert [row["step"] for row in read_metrics(f"{tmp_path}/metrics.jsonl")] == [0, 1]
    [warning] = [record.getMessage() for record in caplog.records if "the tracker" in record.getMessage()]
    assert "TensorBoard failed (RuntimeError: the service is away); the training continues without it" in warning


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
