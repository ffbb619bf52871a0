"""Steps that do nothing, on one level, in a chain or as partitions of one, as a code location.

`dagster … -m noop_ours -a level`, `-a chain`, `-a partitions`.

Their number is 100, or that of the variable NOOP_STEPS.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import dagster as dg

from marin_assets import THIS_OUTPUT_PATH, Step, output_path_of, static, versioned
from marin_assets.assets.assemble import assemble
from marin_assets.catalog.experiments_folder import Experiments

STEPS = int(os.environ.get("NOOP_STEPS", "100"))


@dataclass(frozen=True, kw_only=True)
class NoopConfig:
    number: int = versioned(0)
    input_path: str | None = None
    output_path: str = THIS_OUTPUT_PATH


def do_nothing(config: NoopConfig) -> None:
    """Write nothing."""


def level() -> dg.Definitions:
    """All steps side by side."""
    return assemble(Experiments({"level": tuple(_step("level", i, None) for i in range(STEPS))}, {}))


def chain() -> dg.Definitions:
    """Each step reads the one before."""
    steps: list[Step] = []
    for i in range(STEPS):
        steps.append(_step("chain", i, output_path_of(steps[-1]) if steps else None))
    return assemble(Experiments({"chain": tuple(steps)}, {}))


def partitions() -> dg.Definitions:
    """One step with so many partitions, k0, k1, …"""
    keys = static(*(f"k{i}" for i in range(STEPS)))
    return assemble(
        Experiments({"partitions": (Step(name="noop", fn=do_nothing, config=NoopConfig(), partitions=keys),)}, {})
    )


def _step(kind: str, number: int, input_path: str | None) -> Step:
    return Step(
        name=f"{kind}/s{number}", fn=do_nothing, config=NoopConfig(number=versioned(number), input_path=input_path)
    )
