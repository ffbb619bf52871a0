"""The recipes at every scale, as a plan: tests/stories/test_recipes_of_*.py run the small ones."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from marin_assets.catalog.asset_key import group_of
from marin_assets.stages.filter.filter_documents import FilterDocumentsConfig
from marin_assets.stages.train.config import TrainLmConfig
from marin_assets.stages.train.specs.model import ModelSpec
from marin_assets.step.graph import build_graph
from marin_assets.step.resolve import check_config

SETS = ("documents", "prose", "chats", "preferences", "listings")
SOURCES = {name: f"gs://bucket/{name}/*.jsonl.zst" for name in SETS}
LARGE = {
    "chat": {"scale": "1.4b", "sources": SOURCES},
    "mixture_ablation": {"scale": "300m", "sources": SOURCES},
    "scaling_law": {"scale": "1e19", "sources": SOURCES},
    "width_sweep": {"scale": "150m", "sources": SOURCES},
}
CRAWLED = ("raw/recipes/warc",)
OF_A_CRAWL = {
    "fineweb_like": CRAWLED,
    "fineweb_edu_like": CRAWLED,
    "dclm_like": CRAWLED,
    "dolma_like": CRAWLED,
    "nemotron_like": CRAWLED,
    "open_web_math_like": ("raw/open_web_math_like/warc",),
    "fineweb2_like": (),
    "recipe_ablation": CRAWLED,
}
"""Recipe -> the steps that only its example has."""
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


@pytest.mark.parametrize("name", OF_A_CRAWL)
def test_a_crawl_of_ones_own_takes_the_place_of_the_example(name: str) -> None:
    own, example = build_graph(recipe(name).steps("gs://bucket/crawl")), build_graph(recipe(name).steps())
    names = {node.name for node in own}
    assert {node.name for node in example} - names == set(OF_A_CRAWL[name])
    assert not any("gs://bucket/crawl" in repr(node.step.config) for node in example)
    assert any("gs://bucket/crawl" in repr(node.step.config) for node in own)
    for node in [*own, *example]:
        check_config(node)


def test_recipes_of_a_crawl_share_its_documents_and_its_tokenizer() -> None:
    shared = ("fineweb_like", "fineweb_edu_like", "dclm_like", "dolma_like", "nemotron_like", "recipe_ablation")
    graph = build_graph([step for name in shared for step in recipe(name).steps()])
    names = [node.name for node in graph]
    assert len(names) == len(set(names))
    assert names.count("documents/recipes/crawl") == names.count("tokenizers/recipes/crawl") == 1


@pytest.mark.parametrize("name", [*OF_A_CRAWL, *LARGE, "wikipedia_like"])
def test_the_steps_of_a_recipe_are_in_its_group_or_in_that_of_a_recipe_that_it_continues(name: str) -> None:
    groups = {group_of(node) for node in build_graph(recipe(name).steps())}
    assert f"recipes_{name}" in groups
    assert not {group for group in groups if not group.startswith("recipes")}


def test_the_filters_of_a_recipe_are_those_of_its_paper() -> None:
    expected = {
        "fineweb_like": ["gopher_repetition@datatrove", "gopher_quality@datatrove", "c4@fineweb", "fineweb@0.01"],
        "dclm_like": [f"dclm_{kind}@baseline" for kind in ("text", "quality", "repetition", "lines")],
        "dolma_like": ["gopher_quality@datatrove", "gopher_repetition@datatrove", "c4@datatrove"],
        "fineweb2_like/deu_Latn": [
            f"{family}@fineweb2-deu_Latn" for family in ("gopher_repetition", "fineweb", "gopher_quality")
        ],
    }
    for name, filters in expected.items():
        graph = build_graph(recipe(name.partition("/")[0]).steps())
        [config] = [node.step.config for node in graph if node.name == f"attributes/{name}/filters"]
        assert isinstance(config, FilterDocumentsConfig)
        assert [spec.name for spec in config.filters] == filters


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
