"""The recipes at every scale, as a plan: tests/stories/test_the_recipes.py runs the small ones."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from marin_assets.stages.train.config import TrainLmConfig
from marin_assets.stages.train.specs.model import ModelSpec
from marin_assets.step.graph import build_graph
from marin_assets.step.resolve import check_config

SETS = ("documents", "prose", "chats", "preferences", "listings")
SOURCES = {name: f"gs://bucket/{name}/*.jsonl.zst" for name in SETS}
LARGE = {
    "chat": {"scale": "1.4b", "sources": SOURCES},
    "mixture_ablation": {"scale": "300m", "sources": SOURCES},
    "width_sweep": {"scale": "150m", "sources": SOURCES},
}
EXAMPLE_DUMP = ("raw/wikipedia_like/pages", "raw/wikipedia_like/dump")


def recipe(name: str) -> Any:
    return importlib.import_module(f"marin_assets.experiments.recipes.{name}")


@pytest.mark.parametrize("name", LARGE)
def test_the_large_scale_has_the_same_steps_on_slices_with_models_that_fit(name: str) -> None:
    small, large = build_graph(recipe(name).steps()), build_graph(recipe(name).steps(**LARGE[name]))
    trainings = [node for node in large if isinstance(node.step.config, TrainLmConfig)]
    assert len(trainings) >= len([node for node in small if isinstance(node.step.config, TrainLmConfig)]) >= 4
    for node in trainings:
        assert isinstance(node.step.config.model, ModelSpec)
        assert node.step.resources.pool.startswith("tpu")
        assert "tpu" in node.step.extras
    for node in [*small, *large]:
        check_config(node)
    assert not {node.name for node in trainings} & {node.name for node in small}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_scale_without_data_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"has no data of its own. Give --"):
        recipe(name).steps(LARGE[name]["scale"])


def test_a_crawl_of_ones_own_is_read_by_fineweb_s_filters() -> None:
    own, example = build_graph(recipe("web_like").steps("gs://bucket/crawl")), build_graph(recipe("web_like").steps())
    assert [node.name for node in example if node.name not in {node.name for node in own}] == [
        "raw/web_like/pages",
        "raw/web_like/crawl",
    ]
    [filters] = [node.step.config for node in own if node.name == "attributes/web_like/filters"]
    assert len(filters.filters) == 4


def test_a_dump_of_ones_own_takes_the_place_of_the_example() -> None:
    recipes = recipe("wikipedia_like")
    own, example = build_graph(recipes.steps("gs://bucket/dumps")), build_graph(recipes.steps())
    assert [node.name for node in own] == [node.name for node in example if node.name not in EXAMPLE_DUMP]
    assert len(own) == len(example) - len(EXAMPLE_DUMP)
    [raw] = [node.step.config for node in own if node.name == "raw/wikipedia_like"]
    assert "gs://bucket/dumps" in repr(raw)


def test_the_small_ones_share_their_documents_and_their_tokenizer() -> None:
    graph = build_graph([step for name in LARGE for step in recipe(name).steps()])
    assert [node.name for node in graph if node.name.startswith(("raw/recipes", "tokenizers/"))] == [
        "raw/recipes",
        "tokenizers/recipes",
    ]
