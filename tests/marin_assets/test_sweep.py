"""A grid of steps, and the step that compares them."""

from __future__ import annotations

from typing import Any

import pytest

from marin_assets.defaults import default_comparison, default_eval, default_train, grid
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.simple import SimpleTrainConfig
from marin_assets.stages.train.specs.presets import model_preset
from marin_assets.stages.train.train_lm import LlamaSpec, TrainLmConfig
from marin_assets.step.graph import build_graph
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, unwrap_versioned_value, versioned
from marin_resources.hardware.resources import cpu, tpu


def training(**changes: Any) -> Step:
    config = TrainLmConfig(components={}, tokenizer_path="t", levanter=versioned({"optimizer.epsilon": 1e-8}))
    return default_train("sweep", {}, LlamaSpec(), config, resources=cpu(), **changes)


WIDTHS = {
    "32": {"model.hidden_dim": 32, "model.num_heads": 1},
    "64": {"model.hidden_dim": 64, "model.num_heads": 2},
}


def test_every_combination_is_a_step_with_a_readable_name_and_a_version_of_its_own() -> None:
    points = grid(training(), {"optimizer.learning_rate": [1e-3, 3e-5], "width": WIDTHS})
    assert list(points) == [
        "learning_rate=0.001,width=32",
        "learning_rate=0.001,width=64",
        "learning_rate=3e-05,width=32",
        "learning_rate=3e-05,width=64",
    ]
    steps = {label: point.step for label, point in points.items()}
    assert steps["learning_rate=3e-05,width=64"].name == "checkpoints/sweep/learning_rate=3e-05,width=64"
    configs = {label: unwrap_versioned_value(step.config.model) for label, step in steps.items()}
    assert [(config.hidden_dim, config.num_heads) for config in configs.values()] == [(32, 1), (64, 2)] * 2
    assert len({node.version.hash for node in build_graph(list(steps.values()))}) == 4
    assert points["learning_rate=3e-05,width=64"].varied == {"learning_rate": 3e-5, "width": 64}


def test_what_is_not_varied_is_that_of_the_base() -> None:
    base = training(tags={"team": "data"})
    [point] = grid(base, {"seed": [7]}).values()
    assert point.step.tags == base.tags
    assert point.step.expectations == base.expectations
    assert unwrap_versioned_value(point.step.config.seed) == 7
    assert point.step.config.optimizer == base.config.optimizer


def test_a_text_that_reads_like_no_number_is_a_text() -> None:
    points = grid(training(), {"levanter.note": ["nan", "1e3"]})
    assert [point.varied["note"] for point in points.values()] == ["nan", 1000.0]


def test_a_field_that_is_not_versioned_is_so_in_a_grid() -> None:
    steps = [point.step for point in grid(training(), {"steps_per_eval": [10, 20]}).values()]
    [one, other] = [step.config for step in steps]
    assert one != other
    assert len({node.version.identity for node in build_graph(steps)}) == 2


def test_a_key_of_a_versioned_dict_is_reached_through_its_dots() -> None:
    points = grid(training(), {"levanter.optimizer.epsilon": [1e-9], "levanter.trainer.log_jaxprs": [False]})
    [(label, point)] = points.items()
    assert label == "epsilon=1e-09,log_jaxprs=False"
    assert unwrap_versioned_value(point.step.config.levanter) == {
        "optimizer.epsilon": 1e-9,
        "trainer.log_jaxprs": False,
    }


def test_paths_that_end_alike_are_told_apart() -> None:
    points = grid(training(), {"optimizer.warmup": [0.1], "levanter.optimizer.warmup": [0.2]})
    assert list(points) == ["optimizer.warmup=0.1,levanter.optimizer.warmup=0.2"]


@pytest.mark.parametrize(
    ("varied", "sentence"),
    [
        ({}, "varies nothing"),
        ({"seed": []}, "'seed' has the values [], expected a list of at least one"),
        ({"seed": "12"}, "'seed' has the values '12', expected a list"),
        ({"seed": 3}, "'seed' has the values 3, expected a list"),
        ({"seed": [1, 1]}, "has a value twice in [1, 1]"),
        ({"seed": [object()]}, "expected a number, a text, a bool or None"),
        ({"optimizer.learning_rat": [1.0]}, "OptimizerSpec has no 'learning_rat', expected one of"),
        (
            {"optimiser.lr": [1.0]},
            "TrainLmConfig has no 'optimiser', expected one of the 26 fields. Did you mean 'optimizer'?",
        ),
        ({"seed.bits": [1]}, "int has no 'bits', and there are no fields"),
        ({"width": {"32": 32}}, "expected for each label the fields that it changes"),
        ({"width": WIDTHS, "model.hidden_dim": [8]}, "varies 'model.hidden_dim' by 'width' and by 'hidden_dim'"),
    ],
)
def test_a_mistake_is_one_sentence(varied: Any, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        grid(training(), varied)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_model_that_cannot_fit_is_refused_with_its_name() -> None:
    settings = SimpleTrainConfig(train_batch_size=8, num_train_steps=10, learning_rate=1e-3, tokenizer_path="t")
    base = default_train("big", {}, model_preset("llama_1_4b"), settings, resources=tpu("v5p-8"))
    with pytest.raises(TrainError, match=r"checkpoints/big/num_layers=900"):
        grid(base, {"model.num_layers": [900]})


def test_a_comparison_reads_all_runs_and_is_read_as_a_training() -> None:
    points = grid(training(), {"optimizer.learning_rate": [1e-3, 2e-3]})
    comparison = default_comparison("sweep", points, metric="eval/macro_loss", further=["loss_end"])
    scores = default_eval(comparison)
    graph = build_graph([scores])
    assert {node.name for node in graph[comparison].dependencies} == {point.step.name for point in points.values()}
    assert [node.name for node in graph[scores].dependencies] == ["comparisons/sweep"]
    assert unwrap_versioned_value(comparison.config.varied) == {
        "learning_rate=0.001": {"learning_rate": 0.001},
        "learning_rate=0.002": {"learning_rate": 0.002},
    }
    assert graph[comparison].version.hash != build_graph([default_comparison("sweep", points)]).nodes[-1].version.hash


def test_an_optimizer_that_does_not_work_is_refused_before_its_data_are_made() -> None:
    settings = SimpleTrainConfig(
        train_batch_size=8, num_train_steps=10, learning_rate=1e-3, tokenizer_path="t", decay=1
    )
    with pytest.raises(TrainError, match="decay is 1, expected a share"):
        default_train("wsd", {}, LlamaSpec(), settings)
