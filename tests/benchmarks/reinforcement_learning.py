"""What a training on rewards costs beside the bare generation and the bare training in it, in one run.

    JAX_PLATFORMS=cpu python tests/benchmarks/reinforcement_learning.py

generation   a decoder draws answers to the prompts of each unit, which are made before the clock starts
training     Levanter's trainer makes the updates, on batches that are made before the clock starts
units        a sampler of `train_rl` samples the units: with weights that it fetches, environments, stored rollouts
whole        `train_rl` at staleness 1, with a sampler beside the training

The sides take turns, and swap their order. Their times are CPU seconds, of all processes, of the steps after the first
few: what else runs on the machine takes none of them. What counts is the quickest round of each. The share of waiting
is of the clock, and of the busier side: the other one waits for it in any program. Exits 1 beyond a limit. Takes three
minutes on two cores.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

OF_BARE, OF_DECODER, WAITING = 0.8, 0.9, 0.2
"""The limits."""
ROUNDS, STEPS, WARM_UP_STEPS = 3, 24, 6
WINDOW, TOKENS = 128, 32


def main() -> int:
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        sides = Sides(folder)
        measured: dict[str, list[float]] = {name: [] for name in ("generation", "training", "units", "whole")}
        for number in range(ROUNDS):
            for name in measured if number % 2 == 0 else reversed(measured):
                measured[name].append(getattr(sides, name)())
        return report(measured, sides.waiting)


class Sides:
    """What is measured. All give CPU seconds of a step."""

    def __init__(self, folder: str) -> None:
        from random_llama import write_random_llama
        from rl_training import adam, rl_config

        from marin_assets.stages.train.rl.environments.target_word import TargetWord
        from marin_assets.stages.train.rl.lessons import lesson_of
        from marin_assets.stages.train.rl.rollout import read_rollouts
        from marin_assets.step.values import unwrap_versioned_value

        self.folder, self.waiting, self._runs = folder, list[float](), 0
        self.model = Path(folder, "hf")
        self.model.mkdir()
        write_random_llama(self.model, list(topics.values()), WINDOW, head_dim=32, vocab_size=2048)
        config = rl_config(
            str(self.model), Path(folder), lessons={"the": lesson_of(TargetWord())}, num_train_steps=STEPS, groups=8,
            group_size=8, groups_per_unit=4, max_tokens=TOKENS, max_length=64, temperature=1.0, optimizer=adam(1e-4),
            samplers=1, compilation_cache_dir=f"{folder}/jax",
        )  # fmt: skip
        self.config = unwrap_versioned_value(config)
        self.whole()
        self.waiting.clear()
        self.rollouts = read_rollouts(f"{folder}/whole-1")
        self.tokens = sum(sum(rollout.mask) for rollout in self.rollouts) / STEPS
        """Drawn in a step."""

    def whole(self) -> float:
        from marin_assets.stages.train.rl.train_rl import train_rl

        with each_step() as ends:
            result = train_rl(replace(self.config, output_path=self._new("whole")))
        wait = min(result["wait_share"], result["samplers_wait_share"])
        self.waiting.append(wait + result["sync_share"])
        return per_step(ends)

    def training(self) -> float:
        from marin_assets.stages.train.rl.batch import arrays_of
        from marin_assets.stages.train.rl.train_rl import train_rl
        from marin_assets.stages.train.rl.trainer import run

        of_step = [[rollout for rollout in self.rollouts if rollout.step == step] for step in range(STEPS)]
        batches = [arrays_of(self.config, rollouts, self.config.max_length or WINDOW) for rollouts in of_step]
        ends: list[float] = []

        class BareLoop(run.Loop):
            def run(self, state: Any) -> Any:
                for batch in batches:
                    state = self.train(state, batch).state
                    ends.append(cpu_of_all())
                raise StopIteration

        whole, run.Loop = run.Loop, BareLoop  # type: ignore[misc]
        try:
            train_rl(replace(self.config, output_path=self._new("training"), samplers=0))
        except StopIteration:
            return per_step(ends)
        finally:
            run.Loop = whole  # type: ignore[misc]
        raise AssertionError

    def generation(self) -> float:
        from marin_assets.inference.decoder import Decoder, Prompt
        from marin_assets.inference.jax_model import load_model

        rows = self.config.groups_per_unit * self.config.group_size
        prompts = [
            Prompt(ids=tuple(rollout.prompt_ids), max_tokens=TOKENS, temperature=1.0, seed=number)
            for number, rollout in enumerate(self.rollouts)
        ]
        decoder = Decoder(*load_model(str(self.model)), rows=rows, max_length=self.config.max_length)
        tokens, begin = 0, 0.0
        for first in range(0, len(prompts), rows):
            if first == WARM_UP_STEPS * len(prompts) // STEPS:
                tokens, begin = 0, cpu_of_all()
            for number, prompt in enumerate(prompts[first : first + rows]):
                decoder.admit(number, prompt)
            while not decoder.is_idle:
                tokens += sum(len(ended.ids) + (ended.end_token is not None) for _, ended in decoder.step())
        return (cpu_of_all() - begin) / tokens * self.tokens

    def units(self) -> float:
        from marin_assets.stages.train.rl.plan import units_of
        from marin_assets.stages.train.rl.sampling.samplers import opened_samplers
        from marin_assets.stages.train.rl.weights.packing import packed

        own = replace(self.config, output_path=self._new("units"), samplers=0, staleness=0)
        ends, tokens = [0.0], 0
        with ExitStack() as stack:
            from marin_assets.inference.jax_model import load_model

            model, _ = load_model(str(self.model))
            samplers = stack.enter_context(opened_samplers(own))
            for step in range(STEPS):
                samplers.weights.publish(lambda: packed(model), step)
                samplers.begin(units_of(own, step))
                tokens += samplers.finish(step).tokens if step >= WARM_UP_STEPS else 0
                ends.append(cpu_of_all())
        return (ends[-1] - ends[WARM_UP_STEPS]) / tokens * self.tokens

    def _new(self, name: str) -> str:
        self._runs += 1
        return f"{self.folder}/{name}-{self._runs}"


@contextmanager
def each_step() -> Iterator[list[float]]:
    """The CPU seconds of all processes at the end of each step of `train_rl`."""
    from marin_assets.stages.train.metrics.metrics import MetricsFile

    ends: list[float] = []
    add: Callable[..., None] = MetricsFile.add

    def add_and_look(self: MetricsFile, step: int, metrics: Any) -> None:
        add(self, step, metrics)
        if "rl/staleness" in metrics:
            ends.append(cpu_of_all())

    MetricsFile.add = add_and_look  # type: ignore[method-assign]
    try:
        yield ends
    finally:
        MetricsFile.add = add  # type: ignore[method-assign]


def cpu_of_all() -> float:
    """CPU seconds of this process and of those below it that run."""
    here = psutil.Process(os.getpid())
    times = [process.cpu_times() for process in (here, *here.children(recursive=True))]
    return sum(each.user + each.system for each in times)


def per_step(ends: list[float]) -> float:
    assert len(ends) == STEPS, len(ends)
    return (ends[-1] - ends[WARM_UP_STEPS - 1]) / (STEPS - WARM_UP_STEPS)


def report(measured: dict[str, list[float]], waiting: list[float]) -> int:
    best = {name: min(seconds) for name, seconds in measured.items()}
    for name, seconds in measured.items():
        print(f"{name:11}{1000 * best[name]:8.0f} ms a step    rounds {' '.join(f'{1000 * s:.0f}' for s in seconds)}")
    of_bare = (best["generation"] + best["training"]) / best["whole"]
    of_decoder = best["generation"] / best["units"]
    lines = [
        ("(generation + training) / whole", of_bare, OF_BARE, of_bare >= OF_BARE),
        ("generation / units", of_decoder, OF_DECODER, of_decoder >= OF_DECODER),
        ("waiting of the busier side, and sync", min(waiting), WAITING, min(waiting) <= WAITING),
    ]
    print()
    for name, value, limit, holds in lines:
        print(f"{name:37} {value:.3f}, limit {limit}: {'ok' if holds else 'BEYOND'}")
    return 0 if all(holds for *_, holds in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
