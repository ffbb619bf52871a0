"""The sensor on a training under way, tick by tick, on a disk and on GCS."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest

from marin_assets.assets.assemble import definitions_of
from marin_assets.defaults import default_checkpoint_evals, default_train
from marin_assets.stages.train.exports import export_path, mark_complete
from marin_assets.stages.train.train_lm import LlamaSpec, TrainLmConfig
from marin_assets.step.graph import build_graph
from marin_assets.step.partitions.sets import dynamic
from marin_assets.step.step import Step
from marin_assets.step.values import InputName, versioned
from marin_resources.storage.files import write_bytes
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_sensors.new_checkpoints import new_checkpoints

TRAINING, SCORES, SET = "nano/checkpoints", "nano/checkpoint_evaluation", "nano_checkpoints"


def training(seed: int = 0, **fields: Any) -> Step:
    config = TrainLmConfig(components={}, tokenizer_path="/nowhere", seed=versioned(seed), steps_per_hf_export=100)
    step = default_train("nano", InputName.hardcoded("tokenized"), LlamaSpec(), config)
    return dataclasses.replace(step, **fields)


class Deployment:
    """The training and its evaluations in a code location, and a sensor that is ticked by hand."""

    def __init__(self, instance: dg.DagsterInstance, prefix: str) -> None:
        self.cursor: str | None = None
        self.sensor = new_checkpoints("scores", TRAINING, partitions=SET, assets=[SCORES])
        self._instance, self._store = instance, Store(prefix)
        self.define(training())

    def define(self, step: Step) -> None:
        """Give the code location another version of the training."""
        graph = build_graph([default_checkpoint_evals(step, dynamic(SET))])
        self.trained, self.version = self._store.locate(graph[step].output), graph[step].version.hash
        self.definitions = definitions_of(graph, {})

    def export(self, step: int, *, complete: bool = True) -> None:
        """What the training writes after a step."""
        path = export_path(self.trained, step)
        write_bytes(join(path, "config.json"), b"{}")
        if complete:
            mark_complete(path)

    def look(self) -> Any:
        return self.sensor(
            dg.build_sensor_context(instance=self._instance, cursor=self.cursor, definitions=self.definitions)
        )

    def tick(self) -> list[dg.RunRequest]:
        """The requests of a tick whose cursor is kept."""
        result = self.look()
        assert isinstance(result, dg.SensorResult), result.skip_message
        self.cursor = result.cursor
        self.said = str(result.skip_reason.skip_message) if result.skip_reason else ""
        return list(result.run_requests or ())


@pytest.fixture
def deployment(disk_or_gcs_prefix: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    monkeypatch.setenv("MARIN_PREFIX", disk_or_gcs_prefix)
    with dg.DagsterInstance.ephemeral() as instance:
        yield Deployment(instance, disk_or_gcs_prefix)


def test_each_complete_checkpoint_is_requested_once_in_the_order_of_the_steps(deployment: Deployment) -> None:
    assert deployment.tick() == []
    assert deployment.said.endswith("/exports/{drop}/*: 0 taken; no new one yet.")
    deployment.export(100)
    deployment.export(200, complete=False)
    [request] = deployment.tick()
    assert request.partition_key == "step-0000100"
    assert request.asset_selection == [dg.AssetKey(["nano", "checkpoint_evaluation"])], "the training is not run"
    assert deployment.tick() == []
    assert "2 checkpoints at" in deployment.said
    assert "1 taken; 1 arriving ('step-0000200': it has no '_SUCCESS' yet)" in deployment.said
    deployment.export(1000)
    deployment.export(200)
    assert [request.partition_key for request in deployment.tick()] == ["step-0000200", "step-0001000"]
    assert deployment.tick() == []


def test_a_tick_whose_cursor_is_lost_has_the_same_run_keys(deployment: Deployment) -> None:
    deployment.export(100)
    lost, again = deployment.look(), deployment.look()
    keys = [request.run_key for request in lost.run_requests]
    assert keys == [request.run_key for request in again.run_requests]
    assert keys == [f"scores: {deployment.version}/step-0000100"]


def test_another_version_of_the_training_is_evaluated_anew(deployment: Deployment) -> None:
    deployment.export(100)
    [first] = deployment.tick()
    deployment.define(training(seed=1))
    assert deployment.tick() == [], "its checkpoints are those of its own version"
    deployment.export(100)
    [second] = deployment.tick()
    assert first.partition_key == second.partition_key
    assert first.run_key != second.run_key
    deployment.define(training())
    [again] = deployment.tick()
    assert again.run_key == first.run_key, "which Dagster does not launch twice"


def test_what_cannot_be_watched_is_a_sentence(deployment: Deployment) -> None:
    def said(training: str = TRAINING, partitions: str = SET, assets: tuple[str, ...] = (SCORES,)) -> str:
        deployment.sensor = new_checkpoints("scores", training, partitions=partitions, assets=assets)
        skipped = deployment.look()
        assert isinstance(skipped, dg.SkipReason)
        return str(skipped.skip_message)

    assert said(training="nano/checkpoint") == (
        "The sensor's asset 'nano/checkpoint' is not in the code location. Did you mean 'nano/checkpoints'?"
    )
    assert "has partitions. Expected one without" in said(training=SCORES)
    assert "has other partitions. Give its step partitions=dynamic('other')" in said(partitions="other")
    deployment.cursor = "nonsense"
    assert "The cursor 'nonsense' is none of this sensor. Reset it" in said()
    deployment.cursor = '{"version": 1}'
    assert "is none of this sensor. Reset it" in said()
    with pytest.raises(ValueError, match=r"has assets=\[\], expected a list of asset keys"):
        new_checkpoints("scores", TRAINING, partitions=SET, assets=[])
    with pytest.raises(ValueError, match="expected a list of asset keys"):
        new_checkpoints("scores", TRAINING, partitions=SET, assets=SCORES)
