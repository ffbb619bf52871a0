"""The common kinds of steps: what an experiment gets without stating it."""

from __future__ import annotations

import pytest

from marin_assets.defaults import default_checkpoint_evals, default_eval, default_train
from marin_assets.stages.train.train_lm import LlamaSpec, TrainLmConfig
from marin_assets.step.graph import build_graph
from marin_assets.step.partitions.sets import dynamic
from marin_assets.step.resolve import resolve
from marin_assets.step.step import Step
from marin_resources.hardware import Resources, cpu, gpu, tpu


def steps(resources: Resources | None) -> list[Step]:
    model = default_train("a", {}, LlamaSpec(), TrainLmConfig(components={}, tokenizer_path=""), resources=resources)
    return [model, default_eval(model, resources=resources)]


@pytest.mark.parametrize(
    ("resources", "device"), [(None, ()), (cpu(4), ()), (gpu("H100"), ("gpu",)), (tpu("v5p-8"), ("tpu",))]
)
def test_a_device_comes_with_its_jax_and_changes_no_version(
    resources: Resources | None, device: tuple[str, ...]
) -> None:
    here, there = steps(None), steps(resources)
    assert [step.extras for step in there] == [("train", *device), ("train", "evaluate", *device)]
    assert [node.version.hash for node in build_graph(here)] == [node.version.hash for node in build_graph(there)]


def test_the_evaluation_of_checkpoints_reads_each_export_and_waits_for_no_training() -> None:
    config = TrainLmConfig(components={}, tokenizer_path="", steps_per_hf_export=100)
    model = default_train("a", {}, LlamaSpec(), config)
    scores = default_checkpoint_evals(model, dynamic("a_checkpoints"), ["mmlu"])
    graph = build_graph([scores])
    node = graph[scores].at("step-0000100")
    read = resolve(node, graph, lambda output: "/p/" + output.relative(), "/p")
    assert read.model_path == f"/p/{graph[model].output.relative()}/exports/step-0000100"
    assert node.dependencies == ()
    assert node.name == "checkpoint_evaluation/a"
    other = default_checkpoint_evals(default_train("a", {}, LlamaSpec(num_layers=3), config), dynamic("a_checkpoints"))
    assert build_graph([other])[other].version.hash != node.version.hash, "it covers that of the training"
