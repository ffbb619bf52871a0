"""Plan runs of equal compute: which sizes for which budget, for how many steps, with which batch and learning rate.

In:  budgets of training FLOPs, and the FLOPs a token of each size.   Out: planned runs. Arithmetic alone, no I/O.

A run has whole batches, so its FLOPs are those of the tokens that it reads, and not the budget: Hoffmann et al. 2022,
approach 2, has one parabola for all runs of a budget, which differ by a few percent then.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from marin_assets.stages.scaling.errors import ScalingError
from marin_assets.stages.scaling.fit_config import Forecast
from marin_resources.types.near_names import expected_one_of

LEAST_STEPS = 10
"""Steps of a run: with fewer, rounding to whole batches changes its FLOPs by more than 5 %."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A size at a budget, of which a rule chooses the settings."""

    budget: float
    """Training FLOPs, forward and backward."""
    params: int
    """All parameters."""
    params_without_embeddings: int
    """Those of the layers that a token meets."""
    flops_per_token: float
    """Training FLOPs of a token."""
    seq_len: int

    @property
    def tokens(self) -> float:
        """Tokens of the budget, before they are rounded to whole batches."""
        return self.budget / self.flops_per_token


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """The settings of a run that depend on its size and budget."""

    learning_rate: float
    batch_size: int
    """Sequences a step."""
    further: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of SimpleTrainConfig: {"weight_decay": 0.1}."""


Rule = Callable[[Candidate], RunSettings]


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """A run of whole batches."""

    size: str
    budget: float
    """Training FLOPs that were requested."""
    flops: float
    """Training FLOPs of its tokens."""
    params: int
    """Parameters, counted as the table of runs has them."""
    tokens: int
    steps: int
    settings: RunSettings

    @property
    def share_6nd(self) -> float:
        """6 times params times tokens, by the counted FLOPs."""
        return 6 * self.params * self.tokens / self.flops

    def forecast(self, label: str) -> Forecast:
        """The forecast of this run, for `forecasts` of a fit."""
        return Forecast(label=label, params=float(self.params), tokens=float(self.tokens))


@dataclass(frozen=True, kw_only=True)
class BestSize:
    """The best number of parameters of a budget, from an earlier fit: params at flops, growing by flops^exponent."""

    flops: float
    params: float
    exponent: float = 0.5
    """a of the fit; 0.5 is near that of Hoffmann et al. 2022 (0.46 to 0.50)."""

    def at(self, flops: float) -> float:
        return float(self.params * (flops / self.flops) ** self.exponent)


def deepseek_rule(candidate: Candidate) -> RunSettings:
    """The learning rate and the batch of DeepSeek LLM (Bi et al. 2024, section 3.1), fitted to 1e17 to 2e19 FLOPs.

    0.3118 C^-0.125, and 0.292 C^0.3271 tokens, where C is the budget; the nearest power of two in sequences."""
    sequences = 0.292 * candidate.budget**0.3271 / candidate.seq_len
    return RunSettings(
        learning_rate=float(f"{0.3118 * candidate.budget**-0.125:.3g}"),
        batch_size=2 ** max(0, round(math.log2(sequences))),
    )


def plan_run(size: str, candidate: Candidate, settings: RunSettings, params: int) -> PlannedRun:
    """Round the budget to whole batches. Raises ScalingError for a budget of fewer than 10."""
    if not isinstance(settings, RunSettings):
        raise ScalingError(f"The rule returns {settings!r:.80} for the size {size!r}, expected a RunSettings.")
    batch = settings.batch_size
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        raise ScalingError(
            f"The rule gives the size {size!r} the batch_size {batch!r}, expected a whole number from 1."
        )
    batches = candidate.tokens / (batch * candidate.seq_len)
    steps = round(batches)
    if steps < LEAST_STEPS:
        raise ScalingError(
            f"The budget {budget_text(candidate.budget)} is {batches:.2g} batches of the size {size!r}, of "
            f"{batch} sequences of {candidate.seq_len} tokens, expected at least {LEAST_STEPS}. Leave the size out of "
            "this budget, raise the budget, or have the rule choose a smaller batch."
        )
    tokens = steps * batch * candidate.seq_len
    return PlannedRun(
        size=size,
        budget=candidate.budget,
        flops=tokens * candidate.flops_per_token,
        params=params,
        tokens=tokens,
        steps=steps,
        settings=settings,
    )


def sizes_of_budgets(
    budgets: Sequence[float] | Mapping[float, Sequence[str]], sizes: Sequence[str]
) -> dict[float, tuple[str, ...]]:
    """The sizes of each budget: all of them, unless a mapping has others. Raises ScalingError for a wrong one."""
    if not budgets:
        raise ScalingError("budgets is empty, expected training FLOPs, such as [1e18, 3e18, 1e19].")
    if not sizes:
        raise ScalingError("sizes is empty, expected models by name, such as {'300m': model_preset('llama_300m')}.")
    chosen: dict[float, tuple[str, ...]] = {}
    for budget in budgets:
        if isinstance(budget, bool) or not (math.isfinite(budget) and budget > 0):
            raise ScalingError(f"A budget is {budget!r}, expected a positive number of training FLOPs, such as 1e18.")
        if float(budget) in chosen:
            raise ScalingError(f"The budget {budget_text(budget)} occurs twice, expected each once. Remove one.")
        names = tuple(budgets[budget]) if isinstance(budgets, Mapping) else tuple(sizes)
        _check_names(names, budget, sizes)
        chosen[float(budget)] = names
    return chosen


def sizes_near(
    best: BestSize, budgets: Sequence[float] | Mapping[float, Any], params: Mapping[str, int], number: int
) -> dict[float, tuple[str, ...]]:
    """For each budget the `number` sizes around the best one: as many below as above, as far as they exist.

    `params` has the parameters of all sizes. Raises ScalingError for a budget whose best size is outside of them.
    """
    if isinstance(budgets, Mapping):
        raise ScalingError("budgets names the sizes of each, and around chooses them, expected one of both.")
    if number < 1:
        raise ScalingError(f"per_budget is {number}, expected at least 1 size of each budget, such as 5.")
    ordered = sorted(params, key=lambda size: params[size])
    chosen = {}
    for budget in budgets:
        centre = best.at(budget)
        below = sum(params[size] < centre for size in ordered)
        if below in (0, len(ordered)):
            edge, side = (ordered[0], "below") if below == 0 else (ordered[-1], "above")
            raise ScalingError(
                f"The best size of the budget {budget_text(budget)} is {centre:.3g} parameters, {side} all sizes, of "
                f"which {edge!r} has {params[edge]:.3g}. Add sizes on that side."
            )
        begin = min(max(0, below - (number + 1) // 2), max(0, len(ordered) - number))
        chosen[float(budget)] = tuple(ordered[begin : begin + number])
    return chosen


def budget_text(budget: float) -> str:
    """ "1e18"; a budget with more digits has all of them."""
    short = f"{budget:g}"
    return re.sub(r"e\+0*", "e", short if float(short) == budget else repr(float(budget)))


def _check_names(names: Sequence[str], budget: float, sizes: Sequence[str]) -> None:
    if not names:
        raise ScalingError(f"The budget {budget_text(budget)} has no size, expected some. Leave the budget out.")
    for number, size in enumerate(names):
        if size not in sizes:
            raise ScalingError(
                f"The budget {budget_text(budget)} has the size {size!r}, {expected_one_of(size, sizes, 'sizes')}"
            )
        if size in names[:number]:
            raise ScalingError(f"The budget {budget_text(budget)} has the size {size!r} twice. Remove one.")
