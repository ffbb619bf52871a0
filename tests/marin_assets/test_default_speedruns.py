"""The steps of speedruns: what is in their versions, and what is refused when they are created."""

from __future__ import annotations

from typing import Any

import pytest

from marin_assets.defaults import (
    Author,
    default_recipe_comparison,
    default_speedrun,
    default_speedrun_board,
    default_train,
    grid,
)
from marin_assets.stages.report.records import ReportError
from marin_assets.stages.train.train_lm import LlamaSpec, TrainLmConfig
from marin_assets.step.graph import build_graph
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, InputName


def training(name: str = "nano") -> Step:
    return default_train(name, {}, LlamaSpec(), TrainLmConfig(components={}, tokenizer_path="t"))


def speedrun(name: str = "adam/64", **fields: Any) -> Step:
    return default_speedrun(name, training(), **{"author": "Ada", "description": "A nano model.", **fields})


def version(step: Step) -> str:
    return build_graph([step])[step].output.version


def test_an_entry_reads_its_training_and_has_its_author_in_the_version() -> None:
    step = speedrun()
    assert step.name == "speedruns/adam/64"
    assert [node.name for node in build_graph([step])] == ["checkpoints/nano", "speedruns/adam/64"]
    assert version(step) == version(speedrun(author=Author(name="Ada")))
    assert len({version(speedrun(**changes)) for changes in ({}, {"author": "Bo"}, {"metric": "loss_end"})}) == 3
    assert step.config.label.value == "adam"
    assert speedrun("adam").config.label.value == "adam"
    assert speedrun(label="AdamC").config.label.value == "AdamC"


def test_a_training_of_marins_is_a_path() -> None:
    path = InputName.hardcoded("checkpoints/llama-0a1b2c")
    step = default_speedrun("llama", path, author="Will", description="Marin's.", metric="eval/paloma/c4_en/bpb")
    assert [node.name for node in build_graph([step])] == ["speedruns/llama"]


def test_a_board_reads_entries_and_folders_and_recipes_read_points_of_a_grid() -> None:
    points = grid(training("sweep"), {"seed": [0, 1, 2]})
    entries = [
        default_speedrun(f"adam/{label}", point, author="Ada", description="A seed.") for label, point in points.items()
    ]
    board = default_speedrun_board("all", entries, folders={"theirs": "/shared/speedruns"}, targets={"small": 2})
    assert set(board.config.entries) == {f"adam/seed={seed}" for seed in range(3)}
    assert len(build_graph([board])) == 7
    comparison = default_recipe_comparison("optimizers", {"adam": list(points.values())})
    assert len(build_graph([comparison])) == 4
    assert comparison.name == "comparisons/optimizers"


@pytest.mark.parametrize(
    ("create", "sentence"),
    [
        (
            lambda: default_speedrun("a", "nano", author="x", description="y"),
            "is of 'nano', expected a step that trains",
        ),
        (lambda: speedrun(author=5), "has author=5, expected a name, or Author(name='…')."),
        (lambda: speedrun(author=""), "The author of a speedrun has no name."),
        (lambda: speedrun(goal="low"), "goal is 'low', expected one of"),
        (lambda: speedrun(description=None), "default_speedrun got description=None, expected str"),
        (lambda: default_speedrun_board("a"), "has no entries, expected one at least"),
        (lambda: default_speedrun_board("a", [speedrun()], baseline="adam"), "The baseline is 'adam' without a floor"),
        (lambda: default_recipe_comparison("a", {"adam": []}), "has a recipe without trainings"),
        (
            lambda: default_recipe_comparison("a", {"adam": [training()]}, baseline="muon", floor=1.0),
            "The baseline is 'muon', expected",
        ),
    ],
)
def test_a_mistake_is_one_sentence(create: Any, sentence: str) -> None:
    with pytest.raises((ConfigError, ReportError)) as caught:
        create()
    assert sentence in str(caught.value)


def test_marins_config_of_a_speedrun_is_named_with_ours() -> None:
    with pytest.raises(ImportError, match=r"Here it is default_speedrun\(name, default_train\(…\)"):
        from marin_assets.defaults import SpeedrunConfig  # type: ignore[attr-defined]  # noqa: F401
