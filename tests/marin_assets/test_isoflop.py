"""The trainings of an isoflop sweep: their steps, their FLOPs, and what is added later."""

from __future__ import annotations

from typing import Any

import pytest

from marin_assets.defaults import (
    Forecast,
    default_forecast_check,
    default_scaling_law,
    default_scaling_runs,
    default_train,
    isoflop,
)
from marin_assets.stages.scaling.errors import ScalingError
from marin_assets.stages.scaling.isoflop import BestSize, Candidate, RunSettings, deepseek_rule
from marin_assets.stages.train.simple import SimpleTrainConfig
from marin_assets.stages.train.sizes import size_of
from marin_assets.stages.train.specs.model import ModelSpec
from marin_assets.stages.train.specs.presets import model_preset
from marin_assets.stages.train.specs.start import FromHuggingFace
from marin_assets.stages.train.train_lm import LlamaSpec, TrainLmConfig
from marin_assets.step.graph import build_graph
from marin_assets.step.values import ConfigError, InputName, unwrap_versioned_value, versioned, without_versions
from marin_resources.hardware.resources import tpu

VOCABULARY = 1024
TRAINING = SimpleTrainConfig(train_batch_size=1, num_train_steps=2, learning_rate=1e-3, tokenizer_path="t", warmup=0.1)
TOKENS = InputName.hardcoded("tokenized/x-123456")


def llama(width: int, **changes: Any) -> LlamaSpec:
    heads = versioned(width // 32)
    return LlamaSpec(hidden_dim=versioned(width), num_heads=heads, num_kv_heads=heads, **changes)


SIZES = {str(width): llama(width) for width in (32, 64, 96, 128)}
BUDGETS = (1e11, 3e11, 1e12)


def sweep(budgets: Any = BUDGETS, sizes: Any = SIZES, **changes: Any) -> Any:
    return isoflop("iso", TOKENS, budgets, sizes, **{"vocab_size": VOCABULARY, "train_config": TRAINING, **changes})


def test_each_budget_has_a_training_of_each_size() -> None:
    points = sweep()
    assert len(points) == 12
    assert list(points)[:2] == ["flops=1e11,size=32", "flops=1e11,size=64"]
    assert points["flops=1e12,size=96"].step.name == "checkpoints/iso/flops=1e12,size=96"
    assert points["flops=1e12,size=96"].varied == {"flops": 1e12, "size": "96"}


def test_the_flops_of_a_run_are_those_of_its_whole_batches() -> None:
    for point in sweep().values():
        plan, config = point.plan, without_versions(point.step.config)
        model, steps, batch = config.model, config.num_train_steps, config.train_batch_size
        assert (plan.steps, plan.settings.batch_size) == (steps, batch)
        assert plan.settings.learning_rate == config.optimizer.learning_rate
        assert plan.tokens == steps * batch * model.max_seq_len
        assert plan.flops == plan.tokens * size_of(model, VOCABULARY).flops_per_token
        assert plan.flops == pytest.approx(plan.budget, rel=0.05)
        assert plan.share_6nd == pytest.approx(6 * plan.params * plan.tokens / plan.flops)


def test_a_budget_or_a_size_that_is_added_leaves_the_other_runs_as_they_are() -> None:
    before = {label: point.step for label, point in sweep(BUDGETS[:2], {"32": SIZES["32"], "64": SIZES["64"]}).items()}
    after = {label: point.step for label, point in sweep().items()}
    versions = [
        {label: build_graph([step]).nodes[0].version.text for label, step in steps.items()} for steps in (before, after)
    ]
    assert versions[0].items() <= versions[1].items()
    assert len(versions[1]) - len(versions[0]) == 8


def test_the_rule_decides_learning_rate_batch_and_further_settings() -> None:
    def narrow(candidate: Candidate) -> RunSettings:
        rate = 0.01 * 32**0.5 / candidate.params_without_embeddings**0.25
        return RunSettings(learning_rate=rate, batch_size=8, further={"weight_decay": 0.2})

    [point] = sweep([1e11], {"32": SIZES["32"]}, rule=narrow).values()
    optimizer = unwrap_versioned_value(point.step.config.optimizer)
    assert (point.plan.settings.batch_size, optimizer.weight_decay) == (8, 0.2)
    assert optimizer.learning_rate < 0.01


def test_the_rule_of_deepseek_has_the_numbers_of_its_paper() -> None:
    candidate = Candidate(budget=1e19, params=1, params_without_embeddings=1, flops_per_token=1, seq_len=4096)
    settings = deepseek_rule(candidate)
    assert settings.learning_rate == pytest.approx(0.3118 * 1e19**-0.125, rel=1e-2)
    assert settings.batch_size == 128  # 0.292 * 1e19^0.3271 = 480,000 tokens, 117 sequences


def test_sizes_are_centred_on_the_best_one_as_it_grows_with_the_budget() -> None:
    presets = {name: model_preset(f"llama_{name}") for name in ("30m", "50m", "75m", "150m", "300m", "600m")}
    of_presets = {"sizes": presets, "vocab_size": 128_256, "around": BestSize(flops=1e19, params=2e8), "per_budget": 4}
    points = sweep([1e18, 1e19], **of_presets, resources={name: tpu("v5p-8") for name in presets})
    chosen = {
        budget: [run.varied["size"] for run in points.values() if run.plan.budget == budget] for budget in (1e18, 1e19)
    }
    assert chosen == {1e18: ["50m", "75m", "150m", "300m"], 1e19: ["75m", "150m", "300m", "600m"]}
    with pytest.raises(ScalingError, match=r"budget 1e24 is 6\.32e\+10 parameters, above all sizes, of which '600m'"):
        sweep([1e24], **of_presets)
    with pytest.raises(ScalingError, match=r"per_budget is 0, expected at least 1"):
        sweep([1e18], **{**of_presets, "per_budget": 0})
    with pytest.raises(ScalingError, match=r"budgets names the sizes of each, and around chooses them"):
        sweep({1e18: ["50m"]}, **of_presets)


def test_a_vocabulary_of_the_model_itself_counts() -> None:
    own = ModelSpec(
        hidden_dim=versioned(64), num_heads=versioned(2), num_kv_heads=versioned(2), num_layers=versioned(2),
        intermediate_dim=versioned(128), max_seq_len=versioned(64), vocab_size=versioned(512),
    )  # fmt: skip
    [with_its_own] = sweep([1e11], {"own": own}, vocab_size=100_000).values()
    [with_that] = sweep([1e11], {"own": own}, vocab_size=512).values()
    assert with_its_own.plan == with_that.plan


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"budgets": []}, r"budgets is empty, expected training FLOPs"),
        ({"sizes": {}}, r"sizes is empty, expected models by name"),
        ({"budgets": [1e11, 100_000_000_000]}, r"The budget 1e11 occurs twice"),
        ({"budgets": [float("nan")]}, r"A budget is nan, expected a positive number"),
        ({"budgets": [True]}, r"A budget is True, expected a positive number"),
        ({"budgets": [-1.0]}, r"A budget is -1.0, expected a positive number"),
        ({"budgets": {1e11: ["33"]}}, r"The budget 1e11 has the size '33', expected one of the sizes"),
        ({"budgets": {1e11: ["32", "32"]}}, r"has the size '32' twice"),
        ({"budgets": {1e11: []}}, r"The budget 1e11 has no size"),
        ({"budgets": [1e8]}, r"The budget 1e8 is 1\.4 batches of the size '32', of 1 sequences of 128 tokens"),
        ({"sizes": {"a": SIZES["32"], "b": llama(32)}}, r"The sizes 'a' and 'b' have the same parameters"),
        ({"vocab_size": 0}, r"vocab_size is 0"),
        ({"params": "al"}, r"params is 'al', expected one of .*Did you mean 'all'"),
        ({"rule": lambda candidate: 3}, r"The rule returns 3 for the size '32', expected a RunSettings"),
        ({"rule": lambda candidate: RunSettings(learning_rate=1e-3, batch_size=0)}, r"the batch_size 0, expected"),
        (
            {"rule": lambda candidate: RunSettings(learning_rate=1e-3, batch_size=4, further={"weight_deca": 0.1})},
            r"the further setting 'weight_deca', .*Did you mean 'weight_decay'",
        ),
        (
            {"rule": lambda candidate: RunSettings(learning_rate=1e-3, batch_size=4, further={"num_train_steps": 3})},
            r"the further setting 'num_train_steps', expected one of",
        ),
        ({"resources": {"32": tpu("v5p-8")}}, r"resources lacks the size '64'"),
    ],
)
def test_a_sweep_that_cannot_be_is_one_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ScalingError, match=sentence):
        sweep(**changes)


@pytest.mark.parametrize("changes", [{"budgets": ["1e11"]}, {"budgets": "1e11"}, {"sizes": [llama(32)]}])
def test_a_value_of_another_type_is_one_sentence(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"isoflop got (budgets|sizes).*expected"):
        sweep(**changes)


def test_trainings_are_fitted_by_way_of_their_table() -> None:
    points = sweep()
    target = sweep([4e12], {"target": llama(160)})["flops=4e12,size=target"]
    fit = default_scaling_law("iso", points, forecasts=[target.plan.forecast("target")])
    check = default_forecast_check("iso", fit, {"target": target})
    graph = build_graph([check])
    [table] = graph[fit].dependencies
    assert table.name == "runs/iso"
    assert len(table.dependencies) == 12
    assert {node.name for node in graph[check].dependencies} == {fit.name, target.step.name}
    assert fit.config.forecasts.value == (
        Forecast(label="target", params=target.plan.params, tokens=target.plan.tokens),
    )


def test_the_version_of_a_forecast_does_not_depend_on_its_target() -> None:
    fit = default_scaling_law("iso", sweep(), forecasts=[Forecast(label="target", params=1e6, tokens=1e8)])
    targets = (sweep([4e12], {"target": llama(160)}, train_config=TRAINING), sweep([4e12], {"target": llama(192)}))
    hashes = set()
    for target in targets:
        graph = build_graph([default_forecast_check("iso", fit, {"target": target["flops=4e12,size=target"].step})])
        hashes.add(graph[fit].version.hash)
        assert not any("target" in node.name for node in build_graph([fit]))
    assert len(hashes) == 1


def test_a_step_that_is_no_run_of_a_law_is_one_sentence() -> None:
    config = TrainLmConfig(components={}, tokenizer_path="t", start=FromHuggingFace(path="x"))
    continued = default_train("x", {}, LlamaSpec(), config)
    with pytest.raises(ConfigError, match="begins with trained weights, whose tokens it does not count"):
        default_scaling_runs("z", {"a": continued})
    with pytest.raises(ConfigError, match="is no training of default_train"):
        default_scaling_runs("z", {"a": default_scaling_runs("y", {"a": sweep()["flops=1e11,size=32"]})})


def test_a_training_twice_and_none_are_one_sentence_each() -> None:
    step = sweep()["flops=1e11,size=32"].step
    with pytest.raises(Exception, match=r"The runs 'a' and 'b' are one training, expected each once"):
        default_scaling_runs("z", {"a": step, "b": step})
    with pytest.raises(ConfigError, match=r"'z' has no trainings, expected some by label"):
        default_scaling_runs("z", {})
    with pytest.raises(Exception, match=r"params is 'al', expected one of"):
        default_scaling_runs("z", {"a": step}, params="al")
