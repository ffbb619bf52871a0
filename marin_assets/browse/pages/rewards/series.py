"""The charts of trainings on rewards over their steps: of one its lessons, of several a line for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from marin_assets.browse.pages.line_chart import DrawnChart, Point, draw_chart
from marin_assets.browse.stored.reward_training import RewardTraining, Row
from marin_assets.stages.train.rl.measures.health import ENTROPY, K3, LEAST_ENTROPY, MOST_K3, REWARD
from marin_assets.stages.train.rl.measures.passes import PASS_1, PASS_K, STALENESS_MAX

MOST_LINES = 8
"""Colours."""
POINTS = 120
"""Points of a line; of more, means over equal parts."""
DOTTED = 40
"""Points of a line, up to which each is marked."""
LAST_DIGITS = 1e-6
TRAINED = "all that are trained"

Series = Sequence[tuple[int, float]]


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A chart."""

    title: str
    about: str
    metrics: Mapping[str, str]
    """Metric -> its line's name; of several trainings only the first is drawn."""
    by_lesson: bool = False
    """Whether the first metric has one for each lesson too."""
    limit: float | None = None
    """A dotted line: beyond it the page has a sentence."""


MEASURES = (
    Measure(
        title="Mean reward",
        about="of the answers of a step; by lesson of all that have a reward, trained on or not",
        metrics={REWARD: TRAINED},
        by_lesson=True,
    ),
    Measure(
        title="pass@1",
        about="the share of answers whose reward is above 0",
        metrics={PASS_1: TRAINED},
        by_lesson=True,
    ),
    Measure(
        title="pass@k",
        about="the share of groups of which at least one answer has a reward above 0; k is the size of a group",
        metrics={PASS_K: TRAINED},
        by_lesson=True,
    ),
    Measure(
        title="Lessons",
        about="the share of the groups that each lesson is drawn for, where a curriculum chooses",
        metrics={"rl/lesson_share": TRAINED},
        by_lesson=True,
    ),
    Measure(
        title="Length of an answer", about="tokens that the model has drawn, mean", metrics={"rl/answer_tokens": ""}
    ),
    Measure(
        title="Cut answers",
        about="the share that reached the limit on tokens before its end",
        metrics={"rl/truncated_share": ""},
    ),
    Measure(
        title="Groups without variance",
        about="all rewards of such a group are equal, so nothing is learnt from it",
        metrics={"rl/groups_without_variance": ""},
    ),
    Measure(
        title="Filled batch",
        about="groups of which something is trained on, by those that a batch has room for",
        metrics={"rl/batch_share": ""},
    ),
    Measure(
        title="Entropy",
        about="of the choice of a token, in nats; near 0 all answers are the same",
        metrics={ENTROPY: ""},
        limit=LEAST_ENTROPY,
    ),
    Measure(
        title="Divergence (k3)",
        about="of the weights that train from those that sampled, in nats a token",
        metrics={K3: "from the sampler", "train/kl": "from the model at the start"},
        limit=MOST_K3,
    ),
    Measure(
        title="Ratio of likelihoods",
        about="of a token now and when it was drawn; 1 with the same weights",
        metrics={"train/ratio_max": "largest", "train/ratio_mean": "mean"},
    ),
    Measure(
        title="Held back",
        about="the share of tokens that the correction weighs down or leaves out",
        metrics={"train/bound_share": ""},
    ),
    Measure(
        title="Mismatch",
        about="the largest difference of a token's log-probability between sampling and loss, in nats; where the "
        "weights are the same, that of the numbers alone",
        metrics={"train/mismatch_max": ""},
    ),
    Measure(
        title="Staleness",
        about="updates between the weights that sampled and those that train",
        metrics={"rl/staleness": "mean", STALENESS_MAX: "largest"},
    ),
    Measure(
        title="Waits",
        about="shares of the time",
        metrics={
            "rl/wait_share": "the training waits for rollouts",
            "rl/samplers_wait_share": "samplers wait for weights",
            "rl/sync_share": "weights are published",
        },
    ),
    Measure(
        title="Tokens a second",
        about="of answers",
        metrics={"throughput/tokens_per_second": "trained", "rl/drawn_tokens_per_second": "drawn by a sampler"},
    ),
    Measure(
        title="Rollouts that are not used",
        about="of a step; the table of counts has the reasons",
        metrics={"rl/rollouts_unused": ""},
    ),
)


@dataclass(kw_only=True)
class Drawn:
    """A chart with its legend."""

    measure: Measure
    chart: DrawnChart
    names: list[str] = field(default_factory=list)
    """Names of its lines in the order of their colours; empty for a single line, and for several trainings, as all
    charts of these have the same legend."""
    has_dots: bool = False


def draw_measures(trainings: Sequence[RewardTraining], lessons: Sequence[str]) -> list[Drawn]:
    """The charts of the measures that a training has."""
    last = max((training.metrics[-1]["step"] for training in trainings if training.metrics), default=0)
    return [drawn for measure in MEASURES if (drawn := _draw(measure, trainings, lessons, last)) is not None]


def lessons_of(training: RewardTraining) -> list[str]:
    """The lessons of the metrics."""
    names = {name for row in training.metrics for name in row}
    return sorted(name.removeprefix(f"{REWARD}/") for name in names if name.startswith(f"{REWARD}/"))


def values_of(rows: Sequence[Row], metric: str) -> Series:
    return [(row["step"], row[metric]) for row in rows if metric in row]


def rows_of_numbers(training: RewardTraining, lessons: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The table beside the charts: of each line its first, last, lowest and highest value."""
    for measure in MEASURES:
        for name, metric in _lines(measure, training, lessons).items():
            if series := values_of(training.metrics, metric):
                numbers = [value for _, value in series]
                ends = (numbers[0], numbers[-1], min(numbers), max(numbers))
                title = f"{measure.title}, {name}" if name else measure.title
                yield {"name": title, "numbers": [f"{value:.4g}" for value in ends]}


def _draw(measure: Measure, trainings: Sequence[RewardTraining], lessons: Sequence[str], last: int) -> Drawn | None:
    lines: dict[str, Series] = {}
    if len(trainings) == 1:
        [training] = trainings
        lines = {name: values_of(training.metrics, of) for name, of in _lines(measure, training, lessons).items()}
        lines = {name: series for name, series in lines.items() if series}
    else:
        metric = next(iter(measure.metrics))
        lines = {training.label: values_of(training.metrics, metric) for training in trainings}
    chart = draw_chart([_points(name, series) for name, series in lines.items()], last, measure.limit)
    if chart is None:
        return None
    has_dots = max(map(len, lines.values())) <= DOTTED
    names = list(lines) if len(trainings) == 1 and any(lines) else []
    return Drawn(measure=measure, chart=chart, names=names, has_dots=has_dots)


def _lines(measure: Measure, training: RewardTraining, lessons: Sequence[str]) -> dict[str, str]:
    """Name -> metric of the lines of one training."""
    own = {name: metric for metric, name in measure.metrics.items()}
    if measure.by_lesson:
        first = next(iter(measure.metrics))
        own |= {lesson: f"{first}/{lesson}" for lesson in lessons[: MOST_LINES - len(own)]}
    return own


def _points(name: str, series: Series) -> list[tuple[int, Point | None]]:
    return [
        (step, Point(x=step, y=_drawn(value), half=None, title=f"{name}{', ' * bool(name)}step {step:,}: {value:.4g}"))
        for step, value in _thinned(series)
    ]


def _drawn(value: float) -> float:
    """The value, or 0 of one that only its last digits put below it: an axis would begin far below."""
    return max(value, 0.0) if value > -LAST_DIGITS else value


def _thinned(series: Series) -> Series:
    """Means over POINTS equal parts, at the last step of each, if it has more values."""
    if len(series) <= POINTS:
        return series
    ends = [round(part * len(series) / POINTS) for part in range(POINTS + 1)]
    parts = [series[begin:end] for begin, end in pairwise(ends)]
    return [(part[-1][0], sum(value for _, value in part) / len(part)) for part in parts]
