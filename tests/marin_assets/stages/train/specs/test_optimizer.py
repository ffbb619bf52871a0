"""Optimizers, schedules and Levanter's own fields: what works, and the mistakes beside it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from marin_assets.defaults import default_anneal, default_train
from marin_assets.stages.tokenize.tokenize import TokenizeConfig, tokenize
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.metrics.metrics import read_metrics
from marin_assets.stages.train.simple import SimpleTrainConfig
from marin_assets.stages.train.specs.model import HuggingFaceModel
from marin_assets.stages.train.specs.optimizer import KINDS, LoopSpec, NamedOptimizerSpec, sequences_in
from marin_assets.stages.train.specs.start import FromCheckpoint
from marin_assets.stages.train.train_lm import LlamaSpec, TrainLmConfig, train_lm
from marin_assets.step.graph import build_graph
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, unwrap_versioned_value, versioned

pytestmark = [
    pytest.mark.filterwarnings("default"),  # warnings of Levanter and its dependencies
    pytest.mark.timeout(1200),
]

TINY = LlamaSpec(max_seq_len=32, hidden_dim=32, intermediate_dim=64, num_layers=1, num_heads=1)
TOKENS = Step(name="tokenized/a", fn=tokenize, config=TokenizeConfig(documents_path="d", tokenizer_path="t"))
SIMPLE = SimpleTrainConfig(train_batch_size=4, num_train_steps=8, learning_rate=1e-3)


def config_of(inputs: Any, output: Path, **changes: Any) -> TrainLmConfig:
    settings = {
        "components": inputs.components,
        "tokenizer_path": inputs.tokenizer_path,
        "output_path": str(output),
        "model": TINY,
        "num_train_steps": 8,
        "train_batch_size": 4,
        "steps_per_eval": 5,
        "max_eval_batches": 2,
        "compilation_cache_dir": f"{inputs.tokenizer_path}/../jax",
    }
    return unwrap_versioned_value(TrainLmConfig(**{**settings, **changes}))


def version_of(step: Step) -> str:
    return build_graph([step])[step].version.hash


def levanter_config_of(inputs: Any, output: Path, **changes: Any) -> Any:
    from marin_assets.stages.train.levanter_run.config import build_config

    return build_config(config_of(inputs, output, **changes), tokenizer=inputs.tokenizer_path, log_dir=str(output))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"optimizer": NamedOptimizerSpec(kind="soap")}, "'soap' cannot be used: its first step does not end"),
        ({"optimizer": NamedOptimizerSpec(kind="adamw")}, "The optimizer is 'adamw', .* Did you mean 'adam'"),
        (
            {"optimizer": NamedOptimizerSpec(lr_schedule="wsd")},
            "lr_schedule is 'wsd', expected one of 'constant', 'cosine'",
        ),
        ({"optimizer": NamedOptimizerSpec(warmup=1)}, "warmup is 1, .* Levanter reads 1 as the whole run"),
        ({"optimizer": NamedOptimizerSpec(cycles=2, cycle_length=10)}, "cycles=2 and cycle_length=10. Set one"),
        ({"loop": LoopSpec(batch_schedule=((2, 4),))}, "batch_schedule is .*the first step of the first being 0"),
        ({"loop": LoopSpec(ema_beta=1.0)}, "ema_beta is 1.0, expected a number from 0 to below 1"),
        ({"loop": LoopSpec(train_seq_len=64)}, "train_seq_len is 64, and the model takes at most 32"),
        ({"levanter": {"trainer.seed": 1}}, "'trainer.seed', which this training sets itself: by seed"),
        ({"levanter": {"trainer.checkpointer.keep": []}}, "by steps_per_checkpoint and checkpoint_interval_s"),
        ({"levanter": {"trainer": {}}}, "'trainer', which holds 'trainer.checkpointer'"),
        ({"levanter": {"optimizer": 1, "optimizer.beta1": 1}}, "'optimizer' and 'optimizer.beta1', which is in it"),
    ],
)
def test_a_setting_that_would_not_do_what_it_says_is_refused(
    inputs: Any, tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(TrainError, match=sentence):
        train_lm(config_of(inputs, tmp_path, **changes))


def test_the_sequences_of_a_schedule_of_batches_are_counted_by_stage() -> None:
    loop = unwrap_versioned_value(LoopSpec(batch_schedule=((0, 8), (15, 16))))
    assert sequences_in(8, loop, 0, 30) == 15 * 8 + 15 * 16
    assert sequences_in(8, loop, 10, 20) == 5 * 8 + 5 * 16
    assert sequences_in(8, loop, 0, 10) == 80
    assert sequences_in(8, None, 5, 10) == 40


def test_a_simple_config_versions_what_decides_the_result_and_takes_the_tokenizer_of_its_sets() -> None:
    step = default_train("a", TOKENS, TINY, SIMPLE)
    assert step.config.tokenizer_path == "t"
    version = version_of(step)
    for change in (
        {"learning_rate": 2e-3},
        {"decay": 0.2},
        {"ema_beta": 0.9},
        {"optimizer": "muon"},
        {"data_seed": 1},
        {"train_batch_size": ((0, 4), (4, 8))},
        {"levanter": {"trainer.crash_on_inf": False}},
    ):
        assert version_of(default_train("a", TOKENS, TINY, dataclasses.replace(SIMPLE, **change))) != version, change
    for same in ({"steps_per_eval": 5}, {"per_device_parallelism": 2}, {"steps_per_checkpoint": 2}):
        assert version_of(default_train("a", TOKENS, TINY, dataclasses.replace(SIMPLE, **same))) == version, same


def test_a_field_of_levanter_enters_the_version_without_being_marked() -> None:
    def version(levanter: dict[str, Any] | None) -> str:
        config = TrainLmConfig(components={}, tokenizer_path="t", levanter=levanter)
        return version_of(default_train("a", TOKENS, TINY, config))

    plain = {"trainer.crash_on_inf": False}
    assert version(plain) == version(versioned(plain)) != version(None)


def test_a_set_whose_tokenizer_is_not_known_needs_it_by_name() -> None:
    with pytest.raises(ConfigError, match=r"'a' reads no set of default_tokenize.*Set tokenizer_path"):
        default_train("a", {}, TINY, SIMPLE)
    two = dataclasses.replace(SIMPLE, initialize_from_hf="a", initialize_from_checkpoint_path="b")
    with pytest.raises(ConfigError, match="at most one of them"):
        default_train("a", TOKENS, HuggingFaceModel(path="a"), two)


def test_an_anneal_reads_a_checkpoint_of_the_training_and_falls_to_zero() -> None:
    training = default_train("a", TOKENS, TINY, SIMPLE)
    anneal = default_anneal("a-cool", training, TOKENS, SIMPLE, at_step=4)
    start, optimizer = anneal.config.start, unwrap_versioned_value(anneal.config.optimizer)
    assert isinstance(start, FromCheckpoint)
    assert unwrap_versioned_value((start.step, start.optimizer_state)) == (4, True)
    assert (optimizer.warmup, optimizer.lr_schedule, optimizer.min_lr_ratio) == (0.0, "linear", 0.0)
    assert [node.step.name for node in build_graph([anneal])][-1] == "checkpoints/a-cool"
    with pytest.raises(ConfigError, match="expected a step that default_train returns"):
        default_anneal("b", TOKENS, TOKENS, SIMPLE)
    assert version_of(anneal) != version_of(default_anneal("a-cool", training, TOKENS, SIMPLE, at_step=5))


@pytest.mark.long
@pytest.mark.parametrize(
    ("levanter", "sentence"),
    [
        ({"trainer.crash_on_nam": True}, "no field 'crash_on_nam', expected one of .* Did you mean 'crash_on_nan'"),
        ({"traner.x": True}, "no field 'traner', expected one of .* Did you mean 'trainer'"),
        ({"trainer.crash_on_nan": "yes"}, "as 'yes', expected bool"),
        ({"optimizer.beta1": "0.9"}, r"as '0\.9', expected float"),
        ({"log_entropy.x": True}, "'log_entropy' has no fields"),
        ({"trainer.mesh": {"axis": 1}}, "'trainer.mesh' as"),
    ],
)
def test_a_field_that_levanter_does_not_have_is_refused_with_those_near_it(
    inputs: Any, tmp_path: Path, levanter: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(TrainError, match=sentence):
        levanter_config_of(inputs, tmp_path, levanter=levanter)


@pytest.mark.long
def test_every_field_of_levanter_is_reachable_by_its_path(inputs: Any, tmp_path: Path) -> None:
    fields = {
        "trainer.crash_on_nan": False,
        "trainer.quantization.int8": True,
        "optimizer.beta1": 0.8,
        "model.use_qk_norm": True,
        "model.rope": {"type": "llama3", "theta": 1e6},
        "trainer.mesh.param_mapping": {},
        "log_entropy": True,
    }
    built = levanter_config_of(inputs, tmp_path, levanter=fields)
    assert (built.trainer.crash_on_nan, built.optimizer.beta1, built.model.use_qk_norm) == (False, 0.8, True)
    assert (built.trainer.quantization.int8, built.log_entropy, built.trainer.mesh.param_mapping) == (True, True, {})
    assert (type(built.model.rope).__name__, built.model.rope.theta) == ("Llama3RotaryEmbeddingsConfig", 1e6)
    assert built.trainer.checkpointer.base_path == f"{tmp_path}/checkpoints", "what the run sets is as it was"


@pytest.mark.long
def test_the_learning_rate_warms_up_stays_and_decays(inputs: Any, tmp_path: Path) -> None:
    wsd = NamedOptimizerSpec(learning_rate=1.0, warmup=10, decay=20, lr_schedule="linear", min_lr_ratio=0.0)
    schedule = levanter_config_of(inputs, tmp_path, optimizer=wsd).optimizer.lr_scheduler(100)
    assert [round(float(schedule(step)), 3) for step in (0, 10, 50, 80, 90, 99)] == [0, 1, 1, 1, 0.5, 0.05]


@pytest.mark.long
def test_each_kind_of_optimizer_is_made(inputs: Any, tmp_path: Path) -> None:
    for kind in KINDS:
        optimizer = NamedOptimizerSpec(kind=kind, max_grad_norm=0.5, beta2=0.9)
        built = levanter_config_of(inputs, tmp_path, optimizer=optimizer)
        assert (built.optimizer.max_grad_norm, built.optimizer.beta2) == (0.5, 0.9)
        built.optimizer.build(10)


@pytest.mark.long
def test_a_training_with_stages_of_batches_an_average_and_a_z_loss_learns(inputs: Any, tmp_path: Path) -> None:
    loop = LoopSpec(batch_schedule=((0, 4), (6, 8)), ema_beta=0.5, z_loss_weight=1e-3, train_seq_len=16, data_seed=3)
    optimizer = NamedOptimizerSpec(kind="muon", learning_rate=1e-2, fields={"adam_lr": 1e-2})
    result = train_lm(config_of(inputs, tmp_path, num_train_steps=12, loop=loop, optimizer=optimizer))
    assert result["tokens_seen"] == (6 * 4 + 6 * 8) * 16
    assert result["loss_end"] < result["loss_start"] - 0.05
    assert "eval/ema/loss" in read_metrics(f"{tmp_path}/metrics.jsonl")[-1]


@pytest.mark.long
def test_fewer_sequences_at_a_time_train_and_evaluate_the_same(inputs: Any, tmp_path: Path) -> None:
    whole = train_lm(config_of(inputs, tmp_path / "whole"))
    split = train_lm(config_of(inputs, tmp_path / "split", loop=LoopSpec(per_device_parallelism=2)))
    assert split["loss_start"] == pytest.approx(whole["loss_start"], rel=1e-5)
    assert split["loss_end"] == pytest.approx(whole["loss_end"], rel=1e-4)
