"""Wrong values of a training: each is refused when its step is created, in one sentence that names the field."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from marin_assets.defaults import default_anneal, default_dpo, default_sft, default_train, grid
from marin_assets.mixtures import lm_mixture_data_config
from marin_assets.stages.tokenize.tokenize import TokenizeConfig, tokenize
from marin_assets.stages.train.config import LlamaSpec, OptimizerSpec, TrainDpoConfig, TrainLmConfig
from marin_assets.stages.train.errors import InputError, TrainError
from marin_assets.stages.train.formats import ChatSpec
from marin_assets.stages.train.simple import SimpleTrainConfig
from marin_assets.stages.train.specs.lora import LoraSpec
from marin_assets.stages.train.specs.model import HuggingFaceModel, ModelSpec
from marin_assets.stages.train.specs.optimizer import OF_ALL, OF_KIND, LoopSpec, NamedOptimizerSpec
from marin_assets.stages.train.specs.presets import PRESETS
from marin_assets.stages.train.specs.start import FromCheckpoint, FromHuggingFace
from marin_assets.stages.train.specs.trackers import TensorBoard, Wandb
from marin_assets.stages.train.train_dpo import train_dpo
from marin_assets.stages.train.train_lm import train_lm
from marin_assets.step.graph import build_graph
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, InputName, unwrap_versioned_value, versioned

TOKENS = Step(name="tokenized/a", fn=tokenize, config=TokenizeConfig(documents_path="d", tokenizer_path="t"))
SIMPLE = SimpleTrainConfig(train_batch_size=8, num_train_steps=100, learning_rate=1e-3)
HF = FromHuggingFace(path="m")

OF_THE_CONFIG: list[tuple[dict[str, Any], str]] = [
    ({"num_train_steps": 1}, "num_train_steps is 1, expected at least 2"),
    ({"num_train_steps": -100}, "num_train_steps is -100"),
    ({"num_train_steps": 100.0}, r"num_train_steps is 100\.0, expected a whole number"),
    ({"num_train_steps": "100"}, "num_train_steps is '100', expected a whole number"),
    ({"num_train_steps": True}, "num_train_steps is True, expected a whole number"),
    ({"num_train_steps": None}, "num_train_steps is None"),
    ({"train_batch_size": 0}, "train_batch_size is 0, expected a number of at least 1"),
    ({"train_batch_size": -8}, "train_batch_size is -8"),
    ({"train_batch_size": 8.5}, r"train_batch_size is 8\.5, expected a whole number"),
    ({"steps_per_eval": 0}, "steps_per_eval is 0, expected a number of at least 1"),
    ({"steps_per_eval": None}, "steps_per_eval is None, expected a whole number"),
    ({"max_eval_batches": 0}, "max_eval_batches is 0, expected a number of at least 1, or None"),
    ({"steps_per_checkpoint": 0}, "steps_per_checkpoint is 0"),
    ({"keep_last_checkpoints": 0}, "keep_last_checkpoints is 0, expected a number of at least 1, or None"),
    ({"keep_checkpoints_every": 10}, "keep_checkpoints_every is 10 and keep_last_checkpoints None"),
    ({"checkpoint_interval_s": 0}, "checkpoint_interval_s is 0, expected a number above 0"),
    ({"checkpoint_interval_s": math.nan}, "checkpoint_interval_s is nan, expected a finite number"),
    ({"steps_per_hf_export": 0}, "steps_per_hf_export is 0, expected a number of steps"),
    ({"seed": 2**40}, "seed is 1099511627776, .* would train as 0"),
    ({"seed": -1}, "seed is -1, expected 0 to 4294967295"),
    ({"seed": 1.5}, r"seed is 1\.5, expected a whole number"),
    ({"precision": "p=f32,c=bfloat"}, "precision is 'p=f32,c=bfloat', expected p= of the parameters"),
    ({"precision": "p=f32;c=bf16"}, "precision is 'p=f32;c=bf16'"),
    ({"precision": "bf-16"}, "precision is 'bf-16'"),
    ({"precision": "p=f64"}, "precision is 'p=f64'"),
    ({"precision": ""}, "precision is ''"),
    ({"stop_on_nan": "no"}, "stop_on_nan is 'no', expected True or False"),
    ({"tokenizer_path": None}, "tokenizer_path is None, expected a text"),
    ({"compilation_cache_dir": False}, "compilation_cache_dir is False, expected a text or None"),
    ({"levanter": ["trainer.seed"]}, r"levanter is \['trainer.seed'\], expected a dict"),
    ({"levanter": {"trainer.seed": 1}}, "'trainer.seed', which this training sets itself"),
    ({"chat": True}, "chat is True, expected ChatSpec or None"),
    ({"chat": ChatSpec(chats_per_sequence=0)}, "chats_per_sequence is 0"),
    ({"start": "gs://models/x"}, "start is 'gs://models/x', expected FromCheckpoint, FromHuggingFace or None"),
    ({"start": FromCheckpoint(checkpoints_path="c", step=-1)}, "step of the start is -1"),
    ({"start": FromCheckpoint(checkpoints_path="c", step="last")}, "start.step is 'last', expected a whole number or"),
    ({"start": FromHuggingFace(path=None)}, r"start\.path is None, expected a text"),
    ({"lora": LoraSpec()}, "lora adapts the model of a Hugging Face folder, and start is None"),
    ({"lora": {"rank": 8}, "start": HF}, r"lora is \{'rank': 8\}, expected LoraSpec or None"),
    ({"lora": LoraSpec(rank=0), "start": HF}, "rank of LoRA is 0"),
    ({"lora": LoraSpec(rank=8.0), "start": HF}, r"lora\.rank is 8\.0, expected a whole number"),
    ({"lora": LoraSpec(alpha=0.0), "start": HF}, r"alpha of LoRA is 0\.0, expected a number above 0"),
    ({"lora": LoraSpec(dropout=1.0), "start": HF}, r"dropout of LoRA is 1\.0"),
    ({"lora": LoraSpec(target_modules="q_proj"), "start": HF}, r"lora\.target_modules is 'q_proj', expected a tuple"),
    ({"train_weights": {"trian": 1.0}}, "train_weights names 'trian', .* Did you mean 'train'?"),
    ({"train_weights": {"train": 0.0}}, "expected numbers of 0 or more, one of them above 0"),
    ({"train_weights": {"train": -1.0}}, "expected numbers of 0 or more"),
    ({"train_weights": {"train": "1"}}, "train_weights is .*, expected a dict from a text to a finite number or None"),
    ({"train_weights": [1.0]}, "train_weights is .*, expected a dict"),
]
OF_THE_MODEL: list[tuple[Any, str]] = [
    (LlamaSpec(num_layers=0), "num_layers is 0, expected a number of at least 1"),
    (LlamaSpec(num_heads=0), "num_heads is 0"),
    (LlamaSpec(num_kv_heads=0), "num_kv_heads is 0"),
    (LlamaSpec(num_heads=2, num_kv_heads=3), "expected num_kv_heads to divide num_heads"),
    (LlamaSpec(hidden_dim=65), "a head dimension of 32.5, expected a whole number of at least 32"),
    (LlamaSpec(hidden_dim=66), "a head dimension of 33, expected an even number"),
    (LlamaSpec(hidden_dim="64"), r"model\.hidden_dim is '64', expected a whole number"),
    (LlamaSpec(max_seq_len=1), "max_seq_len is 1, expected a number of at least 2"),
    (LlamaSpec(intermediate_dim=0), "intermediate_dim is 0"),
    (LlamaSpec(tie_word_embeddings="yes"), "tie_word_embeddings is 'yes', expected True or False"),
    (ModelSpec(family="lama"), "family is 'lama', .* Did you mean 'llama'"),
    (ModelSpec(rope="yarn"), "rope is 'yarn'"),
    (ModelSpec(rope_theta=0.0), r"rope_theta is 0\.0, expected a number above 0"),
    (ModelSpec(vocab_size=0), "vocab_size is 0"),
    (ModelSpec(family="mixtral", num_experts=2, num_experts_per_tok=4), "num_experts_per_tok is 4 and num_experts 2"),
    (HuggingFaceModel(path="m", max_seq_len=0), "max_seq_len is 0"),
    ("llama_8b", "model is 'llama_8b', expected LlamaSpec, ModelSpec or HuggingFaceModel"),
    ({"hidden_dim": 64}, "model is .*, expected LlamaSpec"),
    (None, "model is None, expected LlamaSpec"),
]
OF_THE_OPTIMIZER: list[tuple[dict[str, Any], str]] = [
    ({"kind": "adma"}, r"The optimizer is 'adma', .*Did you mean 'adam' or"),
    ({"learning_rate": 0.0}, r"learning_rate is 0\.0, expected a number above 0"),
    ({"learning_rate": -1e-3}, r"learning_rate is -0\.001"),
    ({"learning_rate": "3e-4"}, r"optimizer\.learning_rate is '3e-4', expected a finite number"),
    ({"learning_rate": math.inf}, "learning_rate is inf, expected a finite number"),
    ({"weight_decay": -0.1}, r"weight_decay is -0\.1, expected a number of at least 0"),
    ({"min_lr_ratio": 1.5}, r"min_lr_ratio is 1\.5, expected a number from 0 to 1"),
    ({"lr_schedule": "cosin"}, "lr_schedule is 'cosin', expected one of .* Did you mean 'cosine'"),
    ({"warmup": 200}, "warmup is 200 steps, past the end of the 100 steps"),
    ({"warmup": -1}, "warmup is -1, expected a share"),
    ({"warmup": 1.5}, r"warmup is 1\.5, expected a share from 0\.0 to 1\.0, or steps"),
    ({"warmup": 0.5, "decay": 0.8}, r"warmup is 0\.5 and decay 0\.8, together more than the 100 steps"),
    ({"warmup": 60, "cycles": 2}, "warmup is 60 steps, past the end of cycle 1, which has 50 steps"),
    ({"rewarmup": 60, "cycles": 2}, "rewarmup is 60 steps, past the end of cycle 2, which has 50 steps"),
    ({"cycles": 0}, "cycles is 0, expected a number from 1"),
    ({"cycles": -1}, "cycles is -1"),
    ({"cycles": 101}, "cycles is 101"),
    ({"cycles": (50, 20)}, r"cycles is \(50, 20\), expected steps of 1 to 100, each after the one before"),
    ({"cycles": (50, 200)}, r"cycles is \(50, 200\)"),
    ({"cycles": ()}, r"cycles is \(\)"),
    ({"cycle_length": 0}, "cycle_length is 0"),
    ({"cycle_length": 1e-3}, r"cycle_length is 0\.001"),
    ({"cycle_length": 150}, "cycle_length is 150"),
    ({"cycle_length": (60, 60)}, r"cycle_length is \(60, 60\), .* add up to at most 100"),
    ({"cycles": 2, "cycle_length": 10}, "Set one of them"),
    ({"beta1": 1.0}, r"beta1 is 1\.0, expected a number from 0 to below 1"),
    ({"beta2": -0.1}, r"beta2 is -0\.1"),
    ({"epsilon": 0.0}, r"epsilon is 0\.0, expected a number above 0"),
    ({"max_grad_norm": -1.0}, r"max_grad_norm is -1\.0"),
    ({"kind": "lion", "skip_bad_steps": True}, "'lion' has no field 'skip_bad_steps'"),
    ({"kind": "muon", "fields": {"adam_rl": 1e-3}}, "'muon' has no field 'adam_rl', .* Did you mean 'adam_lr'"),
    ({"fields": {"learning_rate": 1e-2}}, "expected one of them. Leave it out of the fields"),
    ({"fields": ["nesterov"]}, r"optimizer\.fields is \['nesterov'\], expected a dict"),
]
OF_THE_LOOP: list[tuple[dict[str, Any], str]] = [
    ({"batch_schedule": ()}, r"batch_schedule is \(\), expected"),
    ({"batch_schedule": ((0, 8), (0, 16))}, "batch_schedule is .*, each later one higher"),
    ({"batch_schedule": ((0, 0),)}, "batch_schedule is"),
    ({"batch_schedule": (8, 16)}, r"loop\.batch_schedule is \(8, 16\), expected a tuple"),
    ({"batch_schedule": ((0, 8), (200, 16))}, "a stage from step 200, after the last of the 100 steps"),
    ({"train_seq_len": 0}, "train_seq_len is 0"),
    ({"train_seq_len": 256}, "train_seq_len is 256, and the model takes at most 128"),
    ({"z_loss_weight": -1e-4}, r"z_loss_weight is -0\.0001"),
    ({"ema_beta": 1.0}, r"ema_beta is 1\.0, expected a number from 0 to below 1"),
    ({"data_seed": 2**32}, "data_seed is 4294967296, .* would train as 0"),
    ({"per_device_parallelism": 0}, "per_device_parallelism is 0"),
    ({"per_device_parallelism": -1}, "per_device_parallelism is -1"),
    ({"per_device_parallelism": 3}, "per_device_parallelism is 3, and a batch has 16 sequences, expected a divisor"),
    ({"per_device_eval_parallelism": 0}, "per_device_eval_parallelism is 0"),
]
OF_TRACKERS: list[tuple[Any, str]] = [
    (TensorBoard(), "trackers is TensorBoard"),
    (
        ("tensorboard",),
        r"trackers is \('tensorboard',\), expected a tuple, each of whose items is TensorBoard or Wandb",
    ),
    ((TensorBoard(), TensorBoard()), "expected each kind once"),
    ((Wandb(project=""),), "expected the name of a project"),
    ((Wandb(project="a/b"),), "The project of Wandb is 'a/b', expected 1 to 128 characters without any of"),
    ((Wandb(project="lab#1"),), "The project of Wandb is 'lab#1'"),
    ((Wandb(project="p" * 129),), "The project of Wandb is"),
    ((Wandb(project="p", entity="a b/c"),), "The entity of Wandb is 'a b/c'"),
    ((Wandb(project="p", mode="offlin"),), "mode 'online' or 'offline'"),
    ((Wandb(project="p", name=""),), "The name of Wandb is '', expected a text"),
    ((Wandb(project="p", tags=("",)),), "The tags of Wandb have '', expected 1 to 64 characters each"),
    ((Wandb(project="p", tags=("x" * 65,)),), "The tags of Wandb have 'xxx"),
    ((Wandb(project="p", tags="nano"),), r"trackers\.tags is 'nano', expected a tuple, each of whose items is a text"),
    ((Wandb(project=3),), r"trackers\.project is 3, expected a text"),
]
WRONG = [
    *OF_THE_CONFIG,
    *(({"model": model}, sentence) for model, sentence in OF_THE_MODEL),
    *(({"optimizer": NamedOptimizerSpec(**fields)}, sentence) for fields, sentence in OF_THE_OPTIMIZER),
    *(({"loop": LoopSpec(**fields)}, sentence) for fields, sentence in OF_THE_LOOP),
    *(({"trackers": trackers}, sentence) for trackers, sentence in OF_TRACKERS),
    ({"optimizer": OptimizerSpec(warmup=200)}, "warmup is 200 steps, past the end of the 100 steps"),
    ({"optimizer": OptimizerSpec(lr_schedule="cosin")}, "lr_schedule is 'cosin'"),
    ({"optimizer": OptimizerSpec(learning_rate=-1.0)}, "learning_rate is -1.0"),
    ({"optimizer": "adam"}, "optimizer is 'adam', expected OptimizerSpec or NamedOptimizerSpec"),
    ({"loop": {"ema_beta": 0.9}}, "loop is .*, expected LoopSpec or None"),
]


def config_of(kind: type[TrainLmConfig] = TrainLmConfig, **changes: Any) -> TrainLmConfig:
    given = {"components": {}, "tokenizer_path": "t", "num_train_steps": 100, "train_batch_size": 16, **changes}
    return kind(**given)


@pytest.mark.parametrize(("changes", "sentence"), WRONG)
def test_a_wrong_value_is_refused_when_the_step_is_created(changes: dict[str, Any], sentence: str) -> None:
    config = config_of(**changes)
    with pytest.raises((TrainError, InputError), match=f"^Step 'checkpoints/a': .*{sentence}"):
        default_train("a", TOKENS, config.model, config)
    with pytest.raises((TrainError, InputError), match=sentence):  # without default_train too, and within a grid
        Step(name="checkpoints/a", fn=train_lm, config=dataclasses.replace(config, components={"train": "p"}))


def test_a_wrong_value_is_refused_by_a_run_as_well() -> None:
    with pytest.raises(TrainError, match="train_batch_size is 0"):
        train_lm(unwrap_versioned_value(config_of(components={"a": "p"}, output_path="o", train_batch_size=0)))


def test_a_grid_is_checked_at_each_of_its_points() -> None:
    base = default_train("a", TOKENS, LlamaSpec(), config_of())
    with pytest.raises(TrainError, match=r"Step 'checkpoints/a/num_heads=3': .*a head dimension of 21\.3333"):
        grid(base, {"model.num_heads": [2, 3]})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"train_batch_size": ()}, r"batch_schedule is \(\)"),
        ({"train_batch_size": "8"}, "train_batch_size is '8', expected a whole number or a tuple"),
        ({"train_batch_size": ((0, 8), 16)}, "train_batch_size is"),
        ({"num_train_steps": 1e4}, r"num_train_steps is 10000\.0, expected a whole number"),
        ({"learning_rate": None}, "learning_rate is None, expected a finite number"),
        ({"optimizer": "adamw"}, "The optimizer is 'adamw'"),
        ({"optimizer_fields": {"nestrov": True}}, "'adam' has no field 'nestrov', .*'nesterov'"),
        ({"warmup": 1000}, "warmup is 1000 steps, past the end"),
        ({"cycles": 0}, "cycles is 0"),
        ({"seed": 2**40}, "seed is 1099511627776"),
        ({"skip_bad_steps": "yes"}, "skip_bad_steps is 'yes', expected True or False, a whole number or None"),
        ({"levanter": {"trainer.num_train_steps": 5}}, "'trainer.num_train_steps', which this training sets itself"),
    ],
)
def test_a_simple_config_is_checked_by_each_default(changes: dict[str, Any], sentence: str) -> None:
    config = dataclasses.replace(SIMPLE, **changes)
    base = default_train("base", TOKENS, LlamaSpec(), SIMPLE)
    with pytest.raises((TrainError, InputError), match=sentence):
        default_train("a", TOKENS, LlamaSpec(), config)
    with pytest.raises((TrainError, InputError), match=sentence):
        default_anneal("a", base, TOKENS, config)
    with pytest.raises((TrainError, InputError), match=sentence):
        default_sft("a", TOKENS, base, LlamaSpec(), config)
    with pytest.raises((TrainError, InputError), match=sentence):
        default_dpo("a", TOKENS, base, LlamaSpec(), config)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"beta": 0.0}, r"beta is 0\.0, expected a number above 0"),
        ({"beta": "0.1"}, r"beta is '0\.1', expected a finite number"),
        ({"chat": ChatSpec()}, "train_weights and chat are of train_lm"),
        ({"loop": LoopSpec(train_seq_len=64)}, "loop has train_seq_len or z_loss_weight"),
        ({"loop": LoopSpec(ema_beta=0.9)}, "in DPO Levanter begins the average with random weights"),
        ({"num_train_steps": 0}, "num_train_steps is 0"),
        ({"optimizer": OptimizerSpec(learning_rate=0.0)}, "learning_rate is 0"),
    ],
)
def test_a_wrong_value_of_dpo_is_refused_when_the_step_is_created(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises((TrainError, InputError), match=f"^Step 'checkpoints/a': .*{sentence}"):
        default_dpo("a", TOKENS, HF.path, LlamaSpec(), config_of(TrainDpoConfig, **changes))
    with pytest.raises(TrainError, match="With lora the reference is the model below the factors"):
        default_dpo("a", TOKENS, "m", LlamaSpec(), config_of(TrainDpoConfig, lora=LoraSpec()), reference="n")


def test_a_wrong_argument_of_a_default_is_a_sentence() -> None:
    base = default_train("base", TOKENS, LlamaSpec(), SIMPLE)
    start = dataclasses.replace(SIMPLE, initialize_from_hf="m")
    for call, sentence in (
        (lambda: default_train("a", "tokenized/a", LlamaSpec(), SIMPLE), r"reads 'tokenized/a' .*InputName\.hardcoded"),
        (lambda: default_train("a", [TOKENS], LlamaSpec(), SIMPLE), "expected a tokenized step, several by name"),
        (lambda: default_train("a", {"x": None}, LlamaSpec(), SIMPLE), "reads None as 'x'"),
        (lambda: default_train("a", TOKENS, LlamaSpec(), {"num_train_steps": 5}), "a train_config of type dict"),
        (lambda: default_sft("a", TOKENS, None, LlamaSpec(), SIMPLE), "begins with None, expected a step that trains"),
        (lambda: default_sft("a", TOKENS, base, LlamaSpec(), start), "its train_config has one too"),
        (
            lambda: default_dpo("a", TOKENS, base, LlamaSpec(), config_of()),
            "of type TrainLmConfig, expected a TrainDpo",
        ),
        (lambda: default_dpo("a", TOKENS, base, LlamaSpec(), start), "its train_config has one too"),
        (lambda: default_anneal("a", base, TOKENS, config_of()), "of type TrainLmConfig, expected a Simple"),
        (lambda: default_anneal("a", base, TOKENS, start), "its train_config names another start"),
        (lambda: default_anneal("a", None, TOKENS, SIMPLE), "continues from None, expected a step"),
    ):
        with pytest.raises(ConfigError, match=sentence):
            call()


def test_a_member_may_not_take_the_name_of_the_average() -> None:
    averaged = dataclasses.replace(SIMPLE, ema_beta=0.9)
    for tokenized in ({"ema": TOKENS}, lm_mixture_data_config({"ema": TOKENS}, {"ema": 1.0})):
        with pytest.raises(InputError, match="The component 'ema' is named as the average of the weights is"):
            default_train("a", tokenized, LlamaSpec(), averaged)
        default_train("a", tokenized, LlamaSpec(), SIMPLE)


def test_what_works_is_accepted() -> None:
    for preset in PRESETS.values():
        default_train("a", TOKENS, preset, SIMPLE)
    for changes in (
        {"warmup": 1.0},
        {"warmup": 50.0, "decay": 50},
        {"warmup": 0.1, "decay": 1.0},
        {"warmup": 10, "decay": 0.2, "lr_schedule": "linear"},
        {"cycles": 4, "warmup": 5, "rewarmup": 0.1},
        {"cycles": [50, 100]},
        {"cycle_length": 25},
        {"cycle_length": (40, 60)},
        {"train_batch_size": [[0, 4], [50, 8]]},
        {"max_grad_norm": 0.0},
        {"skip_bad_steps": 128, "optimizer_fields": {"nesterov": True}},
        {"seed": 2**32 - 1, "ema_beta": 0.0, "min_lr_ratio": 0},
        {"learning_rate": versioned(1e-3), "precision": "bf16"},
        {"trackers": [TensorBoard(), Wandb(project="my project", tags=["lr=3e-4"])]},
    ):
        default_train("a", TOKENS, LlamaSpec(), dataclasses.replace(SIMPLE, **changes))


def test_sft_and_dpo_take_a_simple_config() -> None:
    base = default_train("base", TOKENS, LlamaSpec(), SIMPLE)
    tuned = default_sft("a", TOKENS, base, LlamaSpec(), SIMPLE)
    assert (tuned.config.chat, tuned.config.tokenizer_path) == (ChatSpec(), "t")
    assert [node.name for node in build_graph([tuned])] == ["tokenized/a", "checkpoints/base", "checkpoints/a"]
    preferring = default_dpo("b", TOKENS, tuned, LlamaSpec(), SIMPLE, reference=InputName.hardcoded("models/ref"))
    assert (preferring.fn, preferring.config.beta) == (train_dpo, TrainDpoConfig.__dataclass_fields__["beta"].default)
    assert isinstance(preferring.config, TrainDpoConfig)
    assert unwrap_versioned_value(preferring.config.optimizer).learning_rate == 1e-3


def test_tags_are_a_dict_or_a_list_as_marin_has_it() -> None:
    def tags(given: Any) -> Any:
        return default_train("a", TOKENS, LlamaSpec(), SIMPLE, tags=given).tags

    assert tags(["llama", "150m", "lr=3e-4"]) == {"llama": "", "150m": "", "lr": "3e-4"}
    assert tags(("nano",)) == {"nano": ""}
    assert tags({"team": "data"}) == {"team": "data"}
    assert tags(None) == tags([]) == {}
    for wrong, sentence in (
        ("nano", "has tags='nano', expected a dict of texts, or a list of them"),
        ([3], r"has tags=\[3\]"),
        (["a b"], "has the tag 'a b', expected at most 63 letters"),
        ({"note": "two words"}, "has the tag 'note' with the value 'two words'"),
        ({"n": 3}, "has the tag 'n' with the value 3"),
    ):
        with pytest.raises(ConfigError, match=sentence):
            tags(wrong)


@pytest.mark.long
def test_the_fields_of_optimizers_are_those_of_levanter() -> None:
    from levanter.optim import OptimizerConfig

    for kind, own in OF_KIND.items():
        known = {field.name for field in dataclasses.fields(OptimizerConfig.get_known_choices()[kind])}
        assert known == {*OF_ALL, *own}, kind
