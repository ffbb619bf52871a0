"""Pretrain -> SFT on some sums -> reinforcement learning -> evaluation before and after, compared.

python -m marin_assets.experiments.rl_sums            a nano model on Python's documentation; minutes on two cores
python -m marin_assets.experiments.rl_sums --dry-run
python -m marin_assets.experiments.rl_sums --scale full --model gs://…/a-model [--tpu v5p-8] [--dry-run]

The SFT teaches the form of an answer, and some of the answers; the training on rewards makes the right ones likelier.
At the scale "full" the model is yours: a folder in Hugging Face's form, such as a mirror of a hub's or the `hf` of a
training here. It is trained on a slice of one host, and four further slices sample beside it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain

from marin_assets import THIS_OUTPUT_PATH, InputName, Step, executor_main, expect, output_path_of, versioned
from marin_assets.defaults import (
    default_model_comparison,
    default_python_text,
    default_rl,
    default_rl_eval,
    default_sft,
    default_tokenize,
    default_tokenize_chats,
    default_tokenizer,
    default_train,
)
from marin_assets.documents import Document, document_files, read_documents, write_documents
from marin_assets.run.recipe_options import take_recipe_options
from marin_assets.stages.train.rl.config import TrainRlConfig
from marin_assets.stages.train.rl.environments.digit_sums import DigitSums
from marin_assets.stages.train.rl.evaluation.config import RlEvalConfig
from marin_assets.stages.train.simple import SimpleTrainConfig
from marin_assets.stages.train.specs.model import HuggingFaceModel, model_from_hf
from marin_assets.stages.train.specs.optimizer import NamedOptimizerSpec
from marin_assets.stages.train.train_lm import LlamaSpec
from marin_resources.hardware.resources import Resources, cpu, tpu
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join

ENVIRONMENT = DigitSums()
SOURCES = ("model",)
VOCABULARY, VALIDATION = 512, 0.08
WINDOW = 64
"""Tokens of a text in pretraining and SFT."""
NANO_SHAPE = LlamaSpec(max_seq_len=versioned(WINDOW))


@dataclass(frozen=True, kw_only=True)
class SolvedSumsConfig:
    documents_path: str | None = None
    """Documents to write once more with the sums behind them; None: only the sums are written."""
    output_path: str = THIS_OUTPUT_PATH
    examples: int = versioned(2000)
    seed: int = versioned(1)
    """Seed of the examples: another than that of the training on rewards."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Sizes of the trainings."""

    sft: SimpleTrainConfig
    rewards: TrainRlConfig
    resources: Resources
    at_least: float
    """Least pass@1 after the training on rewards."""


def adam(learning_rate: float) -> NamedOptimizerSpec:
    """Return an optimizer whose first updates are small: those of Adam are else as large as any."""
    return NamedOptimizerSpec(learning_rate=learning_rate, warmup=0.1, lr_schedule="constant", weight_decay=0.0)


NANO = Scale(
    sft=SimpleTrainConfig(
        train_batch_size=16,
        num_train_steps=180,  # fewer leave it seldom right, more always
        learning_rate=5e-3,
        warmup=0.05,
        precision="p=f32,c=f32",
        max_eval_batches=4,
    ),
    rewards=TrainRlConfig(
        num_train_steps=120,
        groups=48,
        groups_per_unit=48,
        max_tokens=3,
        max_length=16,
        optimizer=adam(1e-3),
    ),
    resources=cpu(),
    at_least=0.5,
)
FULL = Scale(
    sft=SimpleTrainConfig(train_batch_size=64, num_train_steps=50, learning_rate=5e-6, warmup=0.1, max_eval_batches=4),
    rewards=TrainRlConfig(
        num_train_steps=500,
        groups=64,
        group_size=16,
        groups_per_unit=16,
        staleness=1,
        max_tokens=64,
        max_length=256,
        optimizer=adam(1e-6),
        precision="p=f32,c=bfloat16",
        samplers=4,
        sampler_resources=tpu("v6e-4"),
        steps_per_checkpoint=100,
    ),
    resources=tpu("v5p-8"),
    at_least=0.9,
)
SCALES = {"nano": NANO, "full": FULL}


def steps(
    scale: str = "nano", sources: Mapping[str, str] | None = None, train_on: Resources | None = None
) -> list[Step]:
    """Return all steps at a scale. `sources` has the path of the "model" of the scale "full".

    `train_on`: resources of the trainings, in place of the scale's. Raises ValueError for the scale "full" without a
    model.
    """
    size = SCALES[scale] if train_on is None else replace(SCALES[scale], resources=train_on)
    name = "rl_sums" if scale == "nano" else f"rl_sums-{scale}"
    base: Step | InputName
    tokenizer: Step | InputName
    shape: LlamaSpec | HuggingFaceModel = NANO_SHAPE
    if scale == "nano":
        base, tokenizer = pretrained(name, size)
    elif sources is None:
        raise ValueError(f"The scale {scale!r} has no model of its own. Give --model, the path of a folder with one.")
    else:
        path = InputName.hardcoded(sources["model"])
        base, tokenizer, shape = path, path, model_from_hf(path, max_seq_len=WINDOW)
    chats = default_tokenize_chats(
        f"{name}/solved",
        output_path_of(solved_sums(name), "chats"),
        tokenizer,
        template="bare",
        max_seq_len=WINDOW,
        validation_fraction=0.05,
    )
    tuned = default_sft(f"{name}/tuned", chats, base, shape, size.sft, resources=size.resources)
    rewarded = default_rl(f"{name}/rewarded", tuned, {"sums": ENVIRONMENT}, size.rewards, resources=size.resources)
    return [
        default_model_comparison(
            name,
            {
                "before": evaluated(f"{name}/before", tuned, size),
                "after": evaluated(f"{name}/after", rewarded, size, at_least=size.at_least),
            },
            metrics={"sums": "pass@1"},
            title="Sums of two digits, before and after the training on rewards",
            may_be_worse=False,
        )
    ]


def pretrained(name: str, size: Scale) -> tuple[Step, Step]:
    """Return the training of a nano model on Python's documentation, and its tokenizer.

    The tokenizer has seen sums too, so that a number is one token, and the model has less to learn.
    """
    text = default_python_text(name, vocab_size=VOCABULARY, validation_fraction=VALIDATION, max_modules=100)
    both = solved_sums(f"{name}/text", output_path_of(text.documents))
    tokenizer = default_tokenizer(
        f"{name}/sums", output_path_of(both, "documents"), vocab_size=VOCABULARY, validation_fraction=VALIDATION
    )
    tokens = default_tokenize(name, text.documents, tokenizer, validation_fraction=VALIDATION)
    training = SimpleTrainConfig(
        train_batch_size=16, num_train_steps=100, learning_rate=7e-3, precision="p=f32,c=f32", max_eval_batches=4
    )
    return default_train(f"{name}/base", tokens, NANO_SHAPE, training, resources=size.resources), tokenizer


def solved_sums(name: str, documents: InputName | None = None) -> Step:
    """Return the step of sums with their right answers."""
    return Step(
        name=f"raw/{name}/solved",
        fn=write_solved_sums,
        config=SolvedSumsConfig(documents_path=documents),
        extras=("curate",),  # zstandard
    )


def write_solved_sums(config: SolvedSumsConfig) -> dict[str, int]:
    """Write `chats/`, a sum and its right answer in each; `documents/`, the given ones with the sums behind them."""
    drawn = [ENVIRONMENT.example(config.seed, number) for number in range(config.examples)]
    rows = [(str(ENVIRONMENT.prompt(example)), f" {example['a'] + example['b']}") for example in drawn]
    turns = [[{"role": "user", "content": prompt}, {"role": "assistant", "content": answer}] for prompt, answer in rows]
    lines = (json.dumps({"id": str(number), "messages": chat}) + "\n" for number, chat in enumerate(turns))
    write_bytes(join(config.output_path, "chats/sums.jsonl"), "".join(lines).encode())
    if config.documents_path is not None:
        sums = (Document(id=f"sum-{number}", text=prompt + answer) for number, (prompt, answer) in enumerate(rows))
        texts = (text for file in document_files(config.documents_path).shards for text in read_documents(file.path))
        write_documents(join(config.output_path, "documents/all.jsonl.zst"), chain(texts, sums))
    return {"sums": len(rows)}


def evaluated(name: str, model: Step, size: Scale, at_least: float | None = None) -> Step:
    """Return the evaluation of a model, with the settings of the training on rewards."""
    settings = RlEvalConfig(
        samples=16, pass_at=(4,), max_tokens=size.rewards.max_tokens, max_length=size.rewards.max_length
    )
    expectations = [] if at_least is None else [expect("scores.sums.pass@1", at_least=at_least)]
    return default_rl_eval(
        name, model, {"sums": ENVIRONMENT}, settings, resources=size.resources, expectations=expectations
    )


if __name__ == "__main__":
    executor_main(take_recipe_options(steps, scales=SCALES, sources=SOURCES))
