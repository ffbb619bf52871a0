"""The common kinds of steps: what an experiment gets without stating it."""

from __future__ import annotations

import pytest

from marin_assets.defaults import default_eval, default_train
from marin_assets.stages.train.train_lm import LlamaSpec, TrainLmConfig
from marin_assets.step.graph import build_graph
from marin_assets.step.step import Step
from marin_resources.hardware import Resources, cpu, gpu, tpu


def steps(resources: Resources | None) -> list[Step]:
    model = default_train("a", {}, LlamaSpec(), TrainLmConfig(components={}, tokenizer_path=""), resources=resources)
    return [model, default_eval(model, resources=resources)]


@pytest.mark.parametrize(
    ("resources", "device"), [(None, ()), (cpu(4), ()), (gpu(1, "H100"), ("gpu",)), (tpu("v5p-8"), ("tpu",))]
)
def test_a_device_comes_with_its_jax_and_changes_no_version(
    resources: Resources | None, device: tuple[str, ...]
) -> None:
    here, there = steps(None), steps(resources)
    assert [step.extras for step in there] == [("train", *device), ("train", "evaluate", *device)]
    assert [node.version.hash for node in build_graph(here)] == [node.version.hash for node in build_graph(there)]
