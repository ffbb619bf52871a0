"""Whether the difference between two models is more than noise.

Paired differences, errors of questions that share a passage, and the number of questions that would show a difference
are those of Miller 2024, arXiv:2411.00640. Where each difference is -1, 0 or 1, the test is the exact one of McNemar
1947, Psychometrika 12; otherwise it is Student's. Many tests are corrected as in Benjamini and Hochberg 1995, J. R.
Stat. Soc. B 57: of the differences that are marked `ALPHA` at most are expected to be noise, and if no model differed
from the baseline, the probability that a comparison marks one is `ALPHA`, however many tasks it has.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from marin_assets.documents.scores import clustered_error

ALPHA, POWER = 0.05, 0.8
Z95 = 1.96
"""Half the width of a 95% confidence interval, in standard errors."""
SHOWN_ERRORS = NormalDist().inv_cdf(1 - ALPHA / 2) + NormalDist().inv_cdf(POWER)
"""Standard errors of a difference that a single two-sided test with ALPHA shows with the probability POWER."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A difference of two scores."""

    value: float
    error: float
    """Standard error of `value`."""
    p: float
    """Two-sided: how likely a difference as large is, if the models do not differ."""
    questions: int | None = None
    """Questions that both models answered; None for independent scores."""
    passages: int | None = None
    """Groups of questions, fewer than these where some share a passage."""

    @property
    def smallest(self) -> float:
        """The smallest difference that these questions show with the probability POWER."""
        return SHOWN_ERRORS * self.error

    def questions_for(self, difference: float) -> int | None:
        """The number of such questions that would show a difference with the probability POWER; None if unknown."""
        if self.questions is None or not self.error:
            return None
        return math.ceil(self.questions * (self.smallest / difference) ** 2)


def paired(differences: Sequence[float], passages: Sequence[Hashable]) -> Difference | None:
    """Return the mean difference over the same questions. `passages` has the passage of each question; of questions
    with passages of their own, the questions are independent. None for fewer than two passages."""
    questions, groups = len(differences), len(set(passages))
    if groups < 2:
        return None
    mean = math.fsum(differences) / questions
    error = clustered_error(differences, passages)
    if groups == questions and all(difference in (-1, 0, 1) for difference in differences):
        p = _mcnemar(sum(d > 0 for d in differences), sum(d < 0 for d in differences))
    else:
        p = _student(mean, error, groups)
    return Difference(value=mean, error=error, p=p, questions=questions, passages=groups)


def independent(value: float, error: float, other_error: float) -> Difference | None:
    """Return the difference of two scores with errors of their own; None if neither has one."""
    both = math.hypot(error, other_error)
    return Difference(value=value, error=both, p=2 * NormalDist().cdf(-abs(value / both))) if both else None


def false_discovery_rates(p_values: Sequence[float]) -> list[float]:
    """Return the p-values after the correction of Benjamini and Hochberg, in the order of the given ones."""
    order = sorted(range(len(p_values)), key=lambda place: -p_values[place])
    corrected, smallest = [1.0] * len(p_values), 1.0
    for rank, place in zip(range(len(order), 0, -1), order, strict=True):
        smallest = min(smallest, p_values[place] * len(p_values) / rank)
        corrected[place] = smallest
    return corrected


def _mcnemar(better: int, worse: int) -> float:
    """The probability of as uneven a division of the questions at which the models differ."""
    from scipy.special import bdtr  # 0.1 s to import

    return min(1.0, 2 * float(bdtr(min(better, worse), better + worse, 0.5))) if better + worse else 1.0


def _student(mean: float, error: float, groups: int) -> float:
    """Student's test. Not below the probability that the differences of all groups have one sign by chance."""
    from scipy.special import stdtr

    least: float = 2.0 ** (1 - groups)
    if not error:
        return least if mean else 1.0
    return max(least, 2 * float(stdtr(groups - 1, -abs(mean / error))))
