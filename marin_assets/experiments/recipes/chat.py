"""Recipe: pretrain -> anneal -> SFT -> DPO, and a report in which each of the models answers the same questions.

python -m marin_assets.experiments.recipes.chat            a nano model on Python's documentation; minutes on two cores
python -m marin_assets.experiments.recipes.chat --dry-run
python -m marin_assets.experiments.recipes.chat --scale 1.4b --tpu v5p-32 --documents gs://…/*.jsonl.zst \\
    --prose gs://…/*.jsonl.zst --chats gs://…/*.jsonl --preferences gs://…/*.jsonl

At a scale above nano the data are yours: documents to pretrain on, the better ones among them to anneal on, chats and
preferences in OpenAI's shape (docs/reference/chats.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from marin_assets import (
    InputName,
    Step,
    executor_main,
    expect,
    output_path_of,
    versioned,
)
from marin_assets.defaults import (
    default_anneal,
    default_docstring_chats,
    default_download,
    default_dpo,
    default_python_text,
    default_report,
    default_sft,
    default_tokenize,
    default_tokenize_chats,
    default_tokenize_preferences,
    default_tokenizer,
    default_train,
)
from marin_assets.mixtures import lm_mixture_data_config
from marin_assets.run.recipe_options import take_recipe_options
from marin_assets.stages.evaluate.generate_text import GenerateTextConfig, generate_text
from marin_assets.stages.train.config import TrainDpoConfig
from marin_assets.stages.train.simple import SimpleTrainConfig
from marin_assets.stages.train.specs.model import ModelSpec
from marin_assets.stages.train.specs.presets import model_preset
from marin_assets.stages.train.train_lm import LlamaSpec, OptimizerSpec, TrainLmConfig
from marin_resources.hardware.resources import Resources, cpu, tpu

Config = TypeVar("Config", bound=TrainLmConfig)

QUESTIONS = (
    "What does threading.enumerate do?",
    "What does calendar.TextCalendar.pryear do?",
    "What does collections.Counter.most_common do?",
    "What does functools.cache do?",
)
"""Questions of the held-out chats: no model has read the answers to them."""
SOURCES = ("documents", "prose", "chats", "preferences")
"""The data of a scale above nano, each an fsspec URL, a glob or a folder."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Sizes of the four trainings."""

    model: LlamaSpec | ModelSpec
    max_seq_len: int
    vocab_size: int
    validation_fraction: float
    pretrain: SimpleTrainConfig
    anneal_steps: int
    prose_weight: float
    """Share of the better documents in the anneal."""
    mixture_block: int
    sft_steps: int
    sft_learning_rate: float
    dpo_steps: int
    dpo_learning_rate: float
    post_training_batch: int
    resources: Resources


NANO = Scale(
    model=LlamaSpec(),
    max_seq_len=128,
    vocab_size=2048,
    validation_fraction=0.08,
    pretrain=SimpleTrainConfig(
        train_batch_size=16,
        num_train_steps=250,
        learning_rate=7e-3,
        warmup=30,
        lr_schedule="constant",  # the anneal is the decay
        precision="p=f32,c=f32",
        steps_per_eval=125,
        max_eval_batches=8,
        steps_per_checkpoint=250,
    ),
    anneal_steps=40,
    prose_weight=0.5,
    mixture_block=64,
    sft_steps=150,
    sft_learning_rate=5e-3,
    dpo_steps=30,
    dpo_learning_rate=1e-4,
    post_training_batch=16,
    resources=cpu(),
)
BILLION = Scale(
    model=model_preset("llama_1_4b"),
    max_seq_len=4096,
    vocab_size=128_256,
    validation_fraction=0.001,
    pretrain=SimpleTrainConfig(
        train_batch_size=1024,
        num_train_steps=10_000,  # 42 billion tokens
        learning_rate=3e-3,
        warmup=1000,
        lr_schedule="constant",
        weight_decay=0.05,
        z_loss_weight=1e-4,
        steps_per_eval=500,
        max_eval_batches=64,
        steps_per_checkpoint=2000,
    ),
    anneal_steps=2000,
    prose_weight=0.3,
    mixture_block=2048,
    sft_steps=3000,
    sft_learning_rate=1e-5,
    dpo_steps=1000,
    dpo_learning_rate=5e-7,
    post_training_batch=128,
    resources=tpu("v5p-32"),
)
SCALES = {"nano": NANO, "1.4b": BILLION}


def steps(
    scale: str = "nano", sources: Mapping[str, str] | None = None, train_on: Resources | None = None
) -> list[Step]:
    """Return all steps at a scale. `sources` are the data by the names of SOURCES; at "nano" Python's documentation.

    `train_on`: resources of the trainings, in place of the scale's. Raises ValueError for a scale above nano without
    data.
    """
    size = SCALES[scale] if train_on is None else replace(SCALES[scale], resources=train_on)
    name = "chat" if scale == "nano" else f"chat-{scale}"
    if sources is None and scale != "nano":
        raise ValueError(
            f"The scale {scale!r} has no data of its own. Give {', '.join(f'--{key}' for key in SOURCES)}."
        )
    by_label = data_steps(name, size, sources)
    models = model_steps(name, by_label, size)
    answers = {f"answers of {label}": answers_of(name, label, model) for label, model in models.items()}
    title = f"{name}: from documents to a model that answers"
    return [default_report(name, {**by_label, **models, **answers}, title=title)]


def data_steps(name: str, size: Scale, sources: Mapping[str, str] | None) -> dict[str, Step]:
    """Return the steps of the tokenizer and of the four tokenized sets."""
    rows: dict[str, Step | InputName]
    if sources is None:
        text = default_python_text("recipes", vocab_size=size.vocab_size, validation_fraction=size.validation_fraction)
        docstrings, tokenizer = default_docstring_chats(f"{name}/questions"), text.tokenizer
        rows = {"documents": text.documents, "prose": text.prose}
        rows |= {kind: output_path_of(docstrings, kind) for kind in ("chats", "preferences")}
    else:
        rows = {kind: default_download(f"{name}/{kind}", sources[kind]) for kind in SOURCES}
        tokenizer = default_tokenizer(
            name, rows["documents"], vocab_size=size.vocab_size, validation_fraction=size.validation_fraction
        )
    by_label = {"tokenizer": tokenizer}
    for kind in ("documents", "prose"):
        by_label[kind] = default_tokenize(
            f"{name}/{kind}-tokens", rows[kind], tokenizer, validation_fraction=size.validation_fraction
        )
    for kind, tokenize in (("chats", default_tokenize_chats), ("preferences", default_tokenize_preferences)):
        by_label[kind] = tokenize(
            f"{name}/{kind}-tokens",
            rows[kind],
            tokenizer,
            adapter="openai" if kind == "chats" else "answers" if sources is None else "chats",
            max_seq_len=size.max_seq_len,
            validation_fraction=0.1 if sources is None else 0.01,
            expectations=[expect("rows_unaccounted", at_least=0, at_most=0), expect("prompt_mismatches", at_most=0)],
        )
    return by_label


def model_steps(name: str, data: Mapping[str, Step], size: Scale) -> dict[str, Step]:
    """Return the four trainings, each of which starts from the model of the one before."""
    base = default_train(f"{name}/base", data["documents"], size.model, size.pretrain, resources=size.resources)
    annealed = default_anneal(
        f"{name}/annealed",
        base,
        lm_mixture_data_config(
            {"documents": data["documents"], "prose": data["prose"]},
            {"documents": 1 - size.prose_weight, "prose": size.prose_weight},
            mixture_block_size=size.mixture_block,
        ),
        replace(size.pretrain, num_train_steps=size.anneal_steps, warmup=0.0, lr_schedule="linear", min_lr_ratio=0.0),
        resources=size.resources,
    )
    answering = default_sft(
        f"{name}/answering",
        data["chats"],
        annealed,
        size.model,
        post_training(
            data["tokenizer"], size, TrainLmConfig, steps=size.sft_steps, learning_rate=size.sft_learning_rate
        ),
        resources=size.resources,
        expectations=[expect("loss_ratio", at_most=0.9)],
    )
    preferring = default_dpo(
        f"{name}/preferring",
        data["preferences"],
        answering,
        size.model,
        post_training(
            data["tokenizer"], size, TrainDpoConfig, steps=size.dpo_steps, learning_rate=size.dpo_learning_rate
        ),
        resources=size.resources,
        expectations=[expect("accuracy_end", at_least=0.6)],
    )
    return {"base": base, "annealed": annealed, "answering": answering, "preferring": preferring}


def post_training(tokenizer: Step, size: Scale, kind: type[Config], *, steps: int, learning_rate: float) -> Config:
    """Return the settings of SFT or of DPO."""
    return kind(
        components={},
        tokenizer_path=output_path_of(tokenizer),
        optimizer=OptimizerSpec(learning_rate=versioned(learning_rate), warmup=versioned(0.05)),
        num_train_steps=versioned(steps),
        train_batch_size=versioned(size.post_training_batch),
        precision=versioned(size.pretrain.precision),
        steps_per_eval=max(steps // 4, 1),
        max_eval_batches=8,
    )


def answers_of(name: str, label: str, model: Step) -> Step:
    """Return the step in which a model answers the questions, greedily, in the form of the template "plain"."""
    return Step(
        name=f"generated/{name}/{label}-answers",
        fn=generate_text,
        config=GenerateTextConfig(
            model_path=output_path_of(model, "hf"),
            prompts=versioned(tuple(f"User: {question}\nAssistant:" for question in QUESTIONS)),
            max_tokens=versioned(48),
            temperature=versioned(0.0),
        ),
        extras=("train",),
    )


if __name__ == "__main__":
    executor_main(take_recipe_options(steps, scales=SCALES, sources=SOURCES))
