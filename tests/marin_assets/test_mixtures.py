"""Mixtures of tokenized steps, by the names that Marin has for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from marin_assets.defaults import default_tokenize, default_train
from marin_assets.mixtures import (
    add_validation_sets_to_mixture,
    interpolate_mixture_configs,
    interpolate_mixture_weights,
    lm_data_config,
    lm_mixture_data_config,
    lm_varying_mixture_data_config,
    mixture_for_evaluation,
    simulated_epoching_train,
)
from marin_assets.stages.tokenize.train_tokenizer import TrainTokenizerConfig, train_tokenizer
from marin_assets.stages.train.errors import InputError
from marin_assets.stages.train.specs.mixture import Mixture, Subset
from marin_assets.stages.train.train_lm import LlamaSpec, TrainLmConfig
from marin_assets.step.graph import build_graph
from marin_assets.step.step import Step
from marin_assets.step.values import InputName, unwrap_versioned_value, versioned


def tokenizer(size: int = 512) -> Step:
    config = TrainTokenizerConfig(documents_path=InputName.hardcoded("documents"), vocab_size=versioned(size))
    return Step(name="tokenizers/t", fn=train_tokenizer, config=config)


def tokenized(name: str, size: int = 512) -> Step:
    return default_tokenize(name, InputName.hardcoded(f"documents/{name}"), tokenizer(size))


WEB, CODE, HELD_OUT = tokenized("web"), tokenized("code"), tokenized("held_out")
MIXTURE = lm_mixture_data_config({"web": WEB, "code": CODE}, {"web": 3, "code": 1})


def weights_of(mixture: Mixture) -> Any:
    return unwrap_versioned_value(mixture.weights)


def hash_of(step: Step) -> str:
    return build_graph([step])[step].version.hash


def train(mixture: Any, **changes: Any) -> Step:
    config = TrainLmConfig(components={}, tokenizer_path="t", num_train_steps=versioned(256), **changes)
    return default_train("m", mixture, LlamaSpec(), config)


def test_a_training_reads_the_members_of_its_mixture() -> None:
    step = train(MIXTURE)
    assert build_graph([step])[step].dependencies[0].name == "tokenized/code"
    assert [node.name for node in build_graph([step])[step].dependencies] == ["tokenized/code", "tokenized/web"]
    assert step.config.components == {}


def test_the_steps_and_the_order_of_writing_decide_the_version_as_the_mixture_says() -> None:
    backwards = lm_mixture_data_config({"code": CODE, "web": WEB}, {"code": 1, "web": 3})
    assert hash_of(train(MIXTURE)) == hash_of(train(backwards))
    assert hash_of(train(MIXTURE)) == hash_of(
        train(Mixture(components=MIXTURE.components, weights={"web": 3, "code": 1}))
    )
    varying = lm_varying_mixture_data_config({"web": WEB, "code": CODE}, [(0, {"web": 3, "code": 1})])
    changed = [
        varying,
        lm_mixture_data_config({"web": WEB, "code": CODE}, {"web": 3, "code": 1}, mixture_block_size=64),
        lm_mixture_data_config({"web": WEB, "code": CODE}, {"web": 3, "code": 1}, subsets={"web": Subset(tokens=9999)}),
        add_validation_sets_to_mixture(MIXTURE, {"held_out": HELD_OUT}),
    ]
    assert len({hash_of(train(mixture)) for mixture in [MIXTURE, *changed]}) == 5


def test_one_training_set_has_the_name_of_its_step() -> None:
    mixture = lm_data_config(WEB, validation_sets={"held_out": HELD_OUT})
    assert weights_of(mixture) == {"web": 1.0}
    assert list(mixture.components) == ["held_out", "web"]


def test_validation_sets_are_added_once_and_a_name_for_other_data_is_refused() -> None:
    added = add_validation_sets_to_mixture(MIXTURE, {"held_out": HELD_OUT})
    assert weights_of(added) == weights_of(MIXTURE)
    again = add_validation_sets_to_mixture(added, {"held_out": tokenized("held_out"), "web": WEB})
    assert list(again.components) == ["code", "held_out", "web"]
    assert weights_of(again) == weights_of(MIXTURE), "a member that is trained on stays so"
    with pytest.raises(InputError, match="Two mixtures have other data for the name 'web'"):
        add_validation_sets_to_mixture(MIXTURE, {"web": HELD_OUT})


def test_a_mixture_for_evaluation_trains_on_nothing() -> None:
    assert weights_of(mixture_for_evaluation({"web": WEB, "held_out": HELD_OUT})) == {}


def test_interpolated_weights_sum_to_1_whatever_their_units() -> None:
    found = interpolate_mixture_weights([{"web": 30, "code": 10}, {"code": 0.5, "books": 0.5}], [0.5, 0.5])
    assert found == {"books": 0.25, "code": 0.375, "web": 0.375}


def test_mixtures_are_interpolated_with_their_phases() -> None:
    varying = lm_varying_mixture_data_config(
        {"web": WEB, "code": CODE, "held_out": HELD_OUT}, [(0, {"web": 1}), (128, {"code": 1})]
    )
    found = interpolate_mixture_configs([MIXTURE, varying], [0.75, 0.25])
    assert list(found.components) == ["code", "held_out", "web"]
    assert weights_of(found) == [(0, {"code": 0.1875, "web": 0.8125}), (128, {"code": 0.4375, "web": 0.5625})]
    assert weights_of(interpolate_mixture_configs([MIXTURE], [1.0])) == {"code": 0.25, "web": 0.75}


def test_epochs_are_simulated_by_the_tokens_of_the_training() -> None:
    config = TrainLmConfig(components={}, tokenizer_path="t", num_train_steps=versioned(100))
    step = simulated_epoching_train("s", MIXTURE, LlamaSpec(max_seq_len=versioned(64)), config, 1_000_000)
    mixture = unwrap_versioned_value(step.config.mixture.experiment_budget_tokens)
    assert mixture == 100 * 16 * 64
    assert hash_of(step) != hash_of(simulated_epoching_train("s", MIXTURE, LlamaSpec(), config, 2_000_000))
    with pytest.raises(InputError, match="above target_budget_tokens=1000"):
        simulated_epoching_train("s", WEB, LlamaSpec(), config, 1000)


def test_mistakes_are_told_when_the_mixture_is_created() -> None:
    with pytest.raises(InputError, match=r"name 'cod', expected one of the members .* Did you mean 'code'"):
        lm_mixture_data_config({"web": WEB, "code": CODE}, {"web": 3, "cod": 1})
    with pytest.raises(InputError, match="do not name \\['code'\\], and missing_weights_are_validation is False"):
        lm_mixture_data_config({"web": WEB, "code": CODE}, {"web": 1}, missing_weights_are_validation=False)
    with pytest.raises(InputError, match="'web' and 'code' are tokenized with other tokenizers, 'tokenizers/t-"):
        lm_mixture_data_config({"web": WEB, "code": tokenized("code", 1024)}, {"web": 1, "code": 1})
    with pytest.raises(
        InputError, match=r"within a block of 2048\. With 16 sequences a step, begin phases at multiples"
    ):
        train(lm_varying_mixture_data_config({"web": WEB}, [(0, {"web": 1}), (100, {"web": 1})]))
    with pytest.raises(InputError, match=r"which sum to 0\.9, expected 1"):
        interpolate_mixture_weights([{"a": 1}, {"b": 1}], [0.5, 0.4])
    with pytest.raises(InputError, match="There are 1 mixtures and 2 shares"):
        interpolate_mixture_configs([MIXTURE], [0.5, 0.5])
    other = replace(MIXTURE, block_size=versioned(64))
    with pytest.raises(InputError, match="have block_size=2048 and 64, expected the same"):
        interpolate_mixture_configs([MIXTURE, other], [0.5, 0.5])
    with pytest.raises(InputError, match=r"The weights \{'a': 0\} sum to 0, expected a sum above 0"):
        interpolate_mixture_weights([{"a": 0}], [1.0])
