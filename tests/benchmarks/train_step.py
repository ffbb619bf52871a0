"""Seconds of a training step through our stage against Levanter's train_lm called by hand, in one run.

    JAX_PLATFORMS=cpu python tests/benchmarks/train_step.py

Both train the nano Llama of the stage's defaults on the same cache, seed and schedule. By hand means: Levanter's
config with the same values, its no-op tracker, its own checkpoints and export. A step's time is the wall time from the
end of one step to the end of the next, so that trackers and hooks are in it; rounds alternate and swap their order.
What counts is the median step of each side's quietest round: what else runs on the machine can only add. Takes about
three minutes on two cores. Exits 1 above the limit.
"""

from __future__ import annotations

import dataclasses
import logging
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from pydoc_data.topics import topics
from typing import Any

from marin_assets.documents import Document, write_documents
from marin_assets.stages.tokenize.tokenize import TokenizeConfig, tokenize
from marin_assets.stages.tokenize.train_tokenizer import TrainTokenizerConfig, train_tokenizer
from marin_assets.stages.train.train_lm import TrainLmConfig, train_lm
from marin_assets.step.values import unwrap_versioned_value

LIMIT = 1.02
ROUNDS = 3
STEPS = 150
WARM_UP_STEPS = 20


def main() -> int:
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        config = make_inputs(folder)
        sides: dict[str, Callable[[TrainLmConfig], object]] = {"by hand": train_by_hand, "train_lm stage": train_lm}
        for name, train in sides.items():
            time_steps(train, dataclasses.replace(config, output_path=f"{folder}/warm-up {name}"))
        times: dict[str, list[list[float]]] = {name: [] for name in sides}
        for round_number in range(ROUNDS):
            order = list(sides) if round_number % 2 == 0 else list(reversed(sides))
            for name in order:
                output = f"{folder}/{name} {round_number}"
                times[name].append(time_steps(sides[name], dataclasses.replace(config, output_path=output)))
        return report(times["by hand"], times["train_lm stage"])


def make_inputs(folder: str) -> TrainLmConfig:
    documents, tokenizer, cache = f"{folder}/documents", f"{folder}/tokenizer", f"{folder}/cache"
    write_documents(f"{documents}/a.jsonl.zst", (Document(id=n, text=t) for n, t in sorted(topics.items())))
    train_tokenizer(
        unwrap_versioned_value(TrainTokenizerConfig(documents_path=documents, output_path=tokenizer, vocab_size=4096))
    )
    tokenize(
        unwrap_versioned_value(TokenizeConfig(documents_path=documents, tokenizer_path=tokenizer, output_path=cache))
    )
    return unwrap_versioned_value(
        TrainLmConfig(
            components={"topics": cache},
            tokenizer_path=tokenizer,
            output_path="",
            num_train_steps=STEPS,
            compilation_cache_dir=f"{folder}/jax",
        )
    )


def train_by_hand(config: TrainLmConfig) -> None:
    from levanter.checkpoint import CheckpointerConfig
    from levanter.main import train_lm as levanter_train_lm
    from levanter.tracker.tracker import NoopConfig

    from marin_assets.stages.train.levanter_run.config import build_config

    by_hand = build_config(config, tokenizer=config.tokenizer_path, log_dir=f"{config.output_path}/logs")
    by_hand.trainer.tracker = NoopConfig()
    late = by_hand.trainer.checkpointer
    by_hand.trainer.checkpointer = CheckpointerConfig(
        base_path=late.base_path, save_interval=late.save_interval, keep=late.keep
    )
    by_hand.hf_save_path, by_hand.hf_save_steps = f"{config.output_path}/hf", STEPS
    levanter_train_lm.main(by_hand)


def time_steps(train: Callable[[TrainLmConfig], object], config: TrainLmConfig) -> list[float]:
    """Seconds of each step after the first few, by Levanter's last word on each."""
    import levanter.tracker

    ends: list[float] = []
    log = levanter.tracker.log

    def log_with_time(metrics: Mapping[str, Any], **arguments: Any) -> None:
        log(metrics, **arguments)
        if "throughput/loading_time" in metrics:
            ends.append(time.perf_counter())

    levanter.tracker.log = log_with_time
    try:
        train(config)
    finally:
        levanter.tracker.log = log
    assert len(ends) == STEPS, len(ends)
    return [end - start for start, end in zip(ends[WARM_UP_STEPS:], ends[WARM_UP_STEPS + 1 :], strict=False)]


def report(by_hand: list[list[float]], stage: list[list[float]]) -> int:
    print(f"\n{STEPS - WARM_UP_STEPS - 1} steps a round, {ROUNDS} rounds each; medians in ms\n")
    print(f"{'':16}{'quietest':>10}{'all':>10}    rounds")
    quietest = []
    for name, rounds in (("by hand", by_hand), ("train_lm stage", stage)):
        medians = [1000 * statistics.median(steps) for steps in rounds]
        everything = 1000 * statistics.median(step for steps in rounds for step in steps)
        quietest.append(min(medians))
        print(f"{name:16}{quietest[-1]:10.2f}{everything:10.2f}    {' '.join(f'{median:.2f}' for median in medians)}")
    ratio = quietest[1] / quietest[0]
    print(f"\nratio {ratio:.3f}; limit {LIMIT}: {'ok' if ratio <= LIMIT else 'ABOVE'}")
    return 0 if ratio <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
