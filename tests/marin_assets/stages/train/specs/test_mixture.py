"""The recipe of a mixture: what enters the version, what is drawn, and which mistakes are told before the start."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from marin_assets.stages.train.config import TrainLmConfig
from marin_assets.stages.train.errors import InputError
from marin_assets.stages.train.specs.mixture import (
    BlockShuffle,
    Mixture,
    Subset,
    expected_draws,
    mixture_metrics,
    phases_of,
    sequences_in_a_block,
    versioned_mixture,
)
from marin_assets.stages.train.specs.mixture_checks import check_mixture
from marin_assets.stages.train.train_lm import train_lm
from marin_assets.step.graph import build_graph
from marin_assets.step.step import Step
from marin_assets.step.values import output_path_of, unwrap_versioned_value

A = Step(name="tokenized/a", fn=train_lm, config=TrainLmConfig(components={}, tokenizer_path="a"))
B = Step(name="tokenized/b", fn=train_lm, config=TrainLmConfig(components={}, tokenizer_path="a"))
WEIGHTS = {"a": 0.75, "b": 0.25}


def plain(**fields: Any) -> Mixture:
    return unwrap_versioned_value(Mixture(**{"components": {"a": "/a", "b": "/b"}, "weights": WEIGHTS, **fields}))


def version(**fields: Any) -> str:
    components = {"a": output_path_of(A), "b": output_path_of(B)}
    mixture = versioned_mixture(Mixture(**{"components": components, "weights": WEIGHTS, **fields}))
    config = TrainLmConfig(components={}, tokenizer_path="a", mixture=mixture)
    step = Step(name="checkpoints/x", fn=train_lm, config=config)
    return build_graph([step])[step].version.hash


@pytest.mark.parametrize(
    "change",
    [
        {"components": {"a": output_path_of(A), "c": output_path_of(B)}, "weights": {"a": 0.75, "c": 0.25}},
        {"components": {"a": output_path_of(B), "b": output_path_of(A)}},
        {"components": {"a": output_path_of(A), "b": output_path_of(B), "validated": output_path_of(B)}},
        {"components": {"a": {"x": output_path_of(A)}, "b": output_path_of(B)}},
        {"weights": {"a": 0.25, "b": 0.75}},
        {"weights": [(0, WEIGHTS)]},
        {"weights": [(0, WEIGHTS), (128, {"a": 1.0})]},
        {"weights": [(0, WEIGHTS), (256, {"a": 1.0})]},
        {"subsets": {"a": Subset(tokens=1000)}},
        {"subsets": {"a": Subset(sequences=1000)}},
        {"subsets": {"a": Subset(sequences=1000, seed=1)}},
        {"block_size": 1024},
        {"shuffle": False},
        {"shuffle": BlockShuffle()},
        {"shuffle": BlockShuffle(window_blocks=8)},
        {"permutation_type": "linear"},
        {"stop_strategy": "all_exhausted"},
        {"experiment_budget_tokens": 10, "target_budget_tokens": 100},
        {"experiment_budget_tokens": 20, "target_budget_tokens": 100},
    ],
    ids=str,
)
def test_what_decides_the_data_or_their_order_changes_the_version(change: dict[str, Any]) -> None:
    assert version(**change) != version()


def test_the_order_in_which_members_are_written_is_not_in_the_version() -> None:
    backwards = {"b": output_path_of(B), "a": output_path_of(A)}
    assert version(components=backwards, weights={"b": 0.25, "a": 0.75}) == version()
    assert list(plain(components={"b": "/b", "a": "/a"}).components) == ["a", "b"]
    assert version(components={"m": {"y": output_path_of(B), "x": output_path_of(A)}}, weights={"m": 1}) == version(
        components={"m": {"x": output_path_of(A), "y": output_path_of(B)}}, weights={"m": 1}
    )


def test_a_config_without_a_mixture_has_the_version_that_it_had() -> None:
    config = TrainLmConfig(components={"train": output_path_of(A)}, tokenizer_path="a")
    step = Step(name="checkpoints/x", fn=train_lm, config=config)
    assert "mixture" not in build_graph([step])[step].version.text


def test_a_block_has_whole_sequences_and_the_rest_goes_to_the_largest_member() -> None:
    (phase,) = phases_of({"a": 7, "b": 3})
    assert sequences_in_a_block(phase, ["a", "b"], 64) == {"a": 45, "b": 19}


def test_what_a_training_draws_is_counted_over_the_stages() -> None:
    mixture = plain(weights=[(0, {"a": 1.0}), (4, WEIGHTS)], block_size=8)
    assert expected_draws(mixture, steps=10, batch_size=4) == {"a": 16 + 18, "b": 6}


def test_the_metrics_of_a_step_have_the_weights_in_force() -> None:
    of_step = mixture_metrics(plain(weights=[(0, {"a": 3, "b": 1}), (8, {"b": 5})]))
    assert of_step(7) == {"mixture/weight/a": 0.75, "mixture/weight/b": 0.25, "mixture/phase": 0}
    assert of_step(8) == {"mixture/weight/a": 0.0, "mixture/weight/b": 1.0, "mixture/phase": 1}
    assert mixture_metrics(None)(8) == {}


PHASES = [(0, WEIGHTS), (64, {"a": 1.0})]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"components": {}}, "The mixture's components are {}, expected at least one name"),
        ({"components": ["a"]}, r"components are \['a'\], expected at least one name"),
        ({"components": {"a": "/a", "b": {}}}, "Member 'b' of the mixture is empty"),
        ({"weights": {"a": 1, "bb": 1}}, "'bb', expected one of the members .*Did you mean 'b'?"),
        ({"weights": {"a": 1, "b": -0.1}}, "give 'b' -0.1, expected a finite number of 0 or more"),
        ({"weights": {"a": 1, "b": float("nan")}}, "give 'b' nan, expected a finite number"),
        ({"weights": {"a": 1, "b": float("inf")}}, "give 'b' inf, expected a finite number"),
        ({"weights": {"a": 1, "b": "1"}}, "give 'b' '1', expected a finite number"),
        ({"weights": {"a": 1, "b": True}}, "give 'b' True, expected a finite number"),
        ({"weights": {"a": 0, "b": 0}}, "expected at least one above 0"),
        ({"weights": {}}, "expected at least one above 0"),
        ({"weights": 1.0}, "weights are 1.0, expected a dict of name to number, or phases"),
        ({"weights": []}, "weights are an empty list, expected a dict, or phases"),
        ({"weights": [WEIGHTS]}, "has the phase {'a': 0.75, 'b': 0.25}, expected .first step, weights."),
        ({"weights": [(0, WEIGHTS), (64, {"a": 0})]}, "The weights from step 64 are {'a': 0}, expected at least one"),
        ({"weights": [(64, WEIGHTS)]}, "first phase begins at step 64, expected 0"),
        ({"weights": [(0.0, WEIGHTS)]}, "a phase from step 0.0, expected a whole number"),
        ({"weights": [(0, WEIGHTS), (-1, WEIGHTS)]}, "a phase from step -1, expected a whole number of 0 or more"),
        ({"weights": [*PHASES, (64, WEIGHTS)]}, r"begin at the steps \[0, 64, 64\], expected each after"),
        ({"weights": [(0, WEIGHTS), (100, WEIGHTS)]}, "after the last of the 100 steps"),
        (
            {"weights": [(0, WEIGHTS), (60, WEIGHTS)]},
            "from step 60, after 960 sequences, which is within a block of 1024. With 16 sequences a step, begin "
            "phases at multiples of 64 steps, or set block_size to 960",
        ),
        ({"block_size": 0}, "block_size is 0, expected 1 to 65535"),
        ({"block_size": 2**16}, "block_size is 65536, expected 1 to 65535"),
        (
            {"weights": {"a": 0.999, "b": 0.0005}},
            "Member 'b' has a share of 0.0005 from step 0 on, .* so it would never be drawn. Set block_size to at "
            "least 1999, or give it no weight",
        ),
        ({"weights": {"a": 1, "b": 1e-6}}, "never be drawn. Give it a larger weight, or give it no weight"),
        ({"stop_strategy": "restrat"}, "stop_strategy is 'restrat', expected one of 'restart'"),
        ({"permutation_type": "random"}, "permutation_type is 'random', expected one of"),
        ({"shuffle": 1000}, "shuffle is 1000, expected True, False or BlockShuffle"),
        ({"shuffle": BlockShuffle(window_blocks=0)}, "expected whole numbers of 1 or more"),
        ({"subsets": {"c": Subset(sequences=1)}}, "subset of 'c', expected one of the members with a weight"),
        (
            {"subsets": {"b": Subset(sequences=1)}, "weights": {"a": 1}},
            "subset of 'b', expected one of the members with",
        ),
        ({"subsets": {"a": Subset()}}, "expected a Subset with either tokens or sequences"),
        ({"subsets": {"a": Subset(sequences=1, tokens=1)}}, "expected a Subset with either tokens or sequences"),
        ({"subsets": {"a": 100}}, "The subset of 'a' is 100, expected a Subset"),
        ({"subsets": {"a": Subset(sequences=0)}}, "expected a whole number of 1 or more"),
        ({"subsets": {"a": Subset(sequences=1, seed=-1)}}, "has the seed -1, expected None or a number of 0 or more"),
        ({"subsets": {"a": Subset(tokens=31)}}, "has tokens=31, expected at least one sequence of 32"),
        ({"experiment_budget_tokens": 10}, "expected two numbers of tokens of 1 or more, or neither"),
        ({"experiment_budget_tokens": 20, "target_budget_tokens": 10}, "above target_budget_tokens=10, expected at"),
    ],
    ids=str,
)
def test_a_mistake_is_one_sentence(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        check_mixture(plain(**{"block_size": 1024, **fields}), steps=100, batch_size=16, sequence_length=32)
    assert "\n" not in str(caught.value)


def test_a_right_mixture_passes() -> None:
    for fields in ({}, {"weights": PHASES}, {"shuffle": BlockShuffle()}, {"subsets": {"a": Subset(tokens=32, seed=0)}}):
        check_mixture(plain(block_size=1024, **fields), steps=100, batch_size=16, sequence_length=32)  # type: ignore[arg-type]


def caches(folder: Path, **tokens: Mapping[str, int]) -> dict[str, str]:
    """Ledgers alone: what is checked before the start reads no more."""
    import json

    from marin_assets.stages.tokenize.tokenize import tokenizer_digest

    (folder / "tokenizer").mkdir(parents=True)
    (folder / "tokenizer/tokenizer.json").write_text("{}")
    digest = {"preprocessor_metadata": {"tokenizer_sha256": tokenizer_digest(str(folder / "tokenizer"))}}
    for name, sides in tokens.items():
        for side, count in sides.items():
            (folder / name / side).mkdir(parents=True)
            ledger = {"field_counts": {"input_ids": count}, "metadata": digest}
            (folder / name / side / "shard_ledger.json").write_text(json.dumps(ledger))
    return {name: str(folder / name) for name in tokens}


def config_of(folder: Path, mixture: Mixture, **fields: Any) -> TrainLmConfig:
    settings = {"components": {}, "tokenizer_path": f"{folder}/tokenizer", "output_path": f"{folder}/out"}
    return unwrap_versioned_value(TrainLmConfig(**{**settings, "mixture": mixture, **fields}))


def refused(folder: Path, components: dict[str, Any], **fields: Any) -> str:
    mixture = Mixture(**{"components": components, "weights": {"a": 1.0}, "block_size": 16, **fields})
    with pytest.raises(InputError) as caught:
        train_lm(config_of(folder, mixture))
    return str(caught.value)


def test_caches_that_do_not_fit_are_one_sentence(tmp_path: Path) -> None:
    found = caches(tmp_path, a={"train": 1280, "validation": 128}, b={"train": 1280}, c={"train": 127}, d={})
    a, b, c = found["a"], found["b"], found["c"]
    assert refused(tmp_path, {"a": f"{tmp_path}/no"}).startswith(f"Component 'a' has no cache at '{tmp_path}/no/train'")
    assert "Member 'b' has no weight, so it is only validated on, and" in refused(tmp_path, {"a": a, "b": b})
    assert "None of the mixture's members ['a'] has a validation side" in refused(tmp_path, {"a": b})
    assert "has 127 tokens" in refused(tmp_path, {"a": c, "b": a})
    assert "Component 'a/y' has no cache" in refused(tmp_path, {"a": {"x": a, "y": f"{tmp_path}/no"}})
    assert "only 10 sequences of 128 tokens. Take at most sequences=10" in refused(
        tmp_path, {"a": a}, subsets={"a": Subset(sequences=11)}
    )
    budgets = {"experiment_budget_tokens": 1, "target_budget_tokens": 100}
    assert "Member 'a' would have no sequence left" in refused(tmp_path, {"a": a}, **budgets)
    assert "a member 'a/b', and 'a' has a part 'b'" in refused(tmp_path, {"a": {"b": a}, "a/b": a})


def test_a_mixture_beside_components_or_of_another_tokenizer_is_refused(tmp_path: Path) -> None:
    found = caches(tmp_path, a={"train": 1280, "validation": 128})
    mixture = Mixture(components=found, weights={"a": 1.0}, block_size=16)
    for beside in ({"components": found}, {"train_weights": {"a": 1.0}}):
        with pytest.raises(InputError, match="has a mixture and also components or train_weights"):
            train_lm(config_of(tmp_path, mixture, **beside))
    (tmp_path / "tokenizer/tokenizer.json").write_text("{ }")
    assert "was tokenized with another tokenizer" in refused(tmp_path, found)


@pytest.mark.long
def test_our_counts_are_levanters() -> None:
    import warnings

    from levanter.data.dataset import ListAsyncDataset
    from levanter.data.mixture import MixtureDataset

    draw = random.Random(0)
    for _ in range(200):
        names = sorted(f"m{i}" for i in range(draw.randint(1, 8)))
        weights = {name: draw.random() ** draw.randint(1, 6) for name in names}
        block = draw.randint(1, 4096)
        (phase,) = phases_of(weights)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = {name: ListAsyncDataset([0]) for name in names}
            theirs = MixtureDataset(data, phase.weights, block, key=0)._counts_per_block_per_stage[0]
        assert list(sequences_in_a_block(phase, names, block).values()) == theirs.tolist()
