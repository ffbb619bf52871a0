"""Steps a second with a mixture of four caches, against the same batch again and again, in one training.

    JAX_PLATFORMS=cpu python tests/benchmarks/mixture.py

The nano Llama of the stage's defaults is trained on a mixture whose weights change. In half of the parts of the run, in
an order that swaps, the loader is stopped and the model is given one batch: nothing is read, and nothing is mixed. So
the ratio is what the data cost. A step's time is the wall time from the end of one step to the end of the next. The
first steps of a part are left out: with a mixture, until what the loader prepares ahead is full. What counts is the
median step of each side's quietest part: what else runs on the machine can only add. Exits 1 below the limit.
"""

from __future__ import annotations

import dataclasses
import logging
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pydoc_data.topics import topics
from typing import Any

from marin_assets.documents import Document, write_documents
from marin_assets.stages.tokenize.tokenize import TokenizeConfig, tokenize
from marin_assets.stages.tokenize.train_tokenizer import TrainTokenizerConfig, train_tokenizer
from marin_assets.stages.train.specs.mixture import Mixture
from marin_assets.stages.train.train_lm import TrainLmConfig, train_lm
from marin_assets.step.values import unwrap_versioned_value

LIMIT = 0.97
PARTS = (False, True, True, False)
"""Whether a part takes the mixture."""
PART_STEPS, LEFT_OUT_STEPS = 320, 160
"""Levanter prepares 128 batches ahead."""
WEIGHTS = (0.4, 0.3, 0.2, 0.1)


def main() -> int:
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        ends = end_times(lambda: train_lm(make_inputs(folder)))
    return report([ends[i : i + PART_STEPS] for i in range(0, len(ends), PART_STEPS)])


def make_inputs(folder: str) -> TrainLmConfig:
    """A tokenizer, four caches of a quarter of the pages each, and a training on them."""
    pages = [Document(id=name, text=text) for name, text in sorted(topics.items())]
    tokenizer = f"{folder}/tokenizer"
    caches = {f"quarter-{i}": f"{folder}/caches/{i}" for i in range(4)}
    for i in range(4):
        write_documents(f"{folder}/documents/{i}/a.jsonl.zst", pages[i::4])
    settings = TrainTokenizerConfig(documents_path=f"{folder}/documents", output_path=tokenizer, vocab_size=4096)
    train_tokenizer(unwrap_versioned_value(settings))
    for i, path in enumerate(caches.values()):
        documents = f"{folder}/documents/{i}"
        tokenize(
            TokenizeConfig(
                documents_path=documents, tokenizer_path=tokenizer, output_path=path, validation_fraction=0.2
            )
        )
    steps = len(PARTS) * PART_STEPS
    by_name = dict(zip(caches, WEIGHTS, strict=True))
    turned = dict(zip(caches, reversed(WEIGHTS), strict=True))
    return unwrap_versioned_value(
        TrainLmConfig(
            components={},
            mixture=Mixture(components=caches, weights=[(0, by_name), (steps // 2, turned)], block_size=1024),
            tokenizer_path=tokenizer,
            output_path=f"{folder}/out",
            num_train_steps=steps,
            steps_per_eval=steps,
            compilation_cache_dir=None,
        )
    )


def end_times(train: Callable[[], object]) -> list[float]:
    """When each step ended, by Levanter's last word on it, in a training whose parts take turns."""
    import levanter.tracker
    from levanter.trainer import Trainer

    ends: list[float] = []
    log, data_loader = levanter.tracker.log, Trainer.data_loader

    def log_with_time(metrics: Mapping[str, Any], **arguments: Any) -> None:
        log(metrics, **arguments)
        if "throughput/loading_time" in metrics:
            ends.append(time.perf_counter())

    def in_turns(self: Any, *arguments: Any, **settings: Any) -> Any:
        return InTurns(data_loader(self, *arguments, **settings))

    levanter.tracker.log, Trainer.data_loader = log_with_time, in_turns
    try:
        train()
    finally:
        levanter.tracker.log, Trainer.data_loader = log, data_loader
    assert len(ends) == len(PARTS) * PART_STEPS, len(ends)
    return ends


@dataclasses.dataclass
class InTurns:
    """In the place of Levanter's loader."""

    loader: Any

    def iter_from_step(self, step: int) -> Iterator[Any]:
        for number, is_mixture in enumerate(PARTS):
            iterator = self.loader.iter_from_step(number * PART_STEPS)
            batch = next(iterator)
            if not is_mixture:
                iterator._batches.stop()
            for _ in range(PART_STEPS):
                yield batch
                batch = next(iterator) if is_mixture else batch
            iterator._batches.stop()


def report(parts: list[list[float]]) -> int:
    print(f"\n{PART_STEPS - LEFT_OUT_STEPS} steps of a part, medians in ms\n")
    print(f"{'':16}{'quietest':>10}{'all':>10}    parts")
    quietest = {}
    for is_mixture, name in ((False, "one batch"), (True, "mixture of four")):
        times = [
            [
                1000 * (end - start)
                for start, end in zip(ends[LEFT_OUT_STEPS:], ends[LEFT_OUT_STEPS + 1 :], strict=False)
            ]
            for ends, kind in zip(parts, PARTS, strict=True)
            if kind == is_mixture
        ]
        medians = [statistics.median(steps) for steps in times]
        quietest[is_mixture] = min(medians)
        everything = statistics.median(step for steps in times for step in steps)
        shown = " ".join(f"{median:.2f}" for median in medians)
        print(f"{name:16}{quietest[is_mixture]:10.2f}{everything:10.2f}    {shown}")
    ratio = quietest[False] / quietest[True]
    print(
        f"\nstep rate with the mixture: {ratio:.3f} of one batch; limit {LIMIT}: {'ok' if ratio >= LIMIT else 'BELOW'}"
    )
    return 0 if ratio >= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
