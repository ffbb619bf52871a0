"""Plot a training on rewards: PNGs of its rewards, its policy and its waits, by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from marin_assets.stages.train.metrics.loss_plot import series, write_figure
from marin_assets.stages.train.metrics.metrics import Row
from marin_assets.stages.train.rl.measures.passes import PASS_1, PASS_K

REWARD = "rl/reward"
MOST_LESSONS = 12
"""In a legend; more would cover the plot."""
POLICY: Mapping[str, Mapping[str, str]] = {
    "entropy (nats)": {"train/entropy": ""},
    "k3 of the sampler (nats)": {"train/k3_of_sampler": "", "train/kl": "divergence from the start"},
    "ratio": {"train/ratio_max": "largest", "train/ratio_mean": "mean"},
    "share held back": {"train/bound_share": ""},
}
"""Label of an axis -> metrics, and their names in the legend."""
WAITS: Mapping[str, Mapping[str, str]] = {
    "share of the time": {
        "rl/wait_share": "training waits for rollouts",
        "rl/samplers_wait_share": "samplers wait for weights",
        "rl/sync_share": "weights are published",
    },
    "tokens a second": {"throughput/tokens_per_second": "trained", "rl/drawn_tokens_per_second": "drawn by a sampler"},
    "staleness (updates)": {"rl/staleness": "mean", "rl/staleness_max": "largest"},
}


def plot_rewards(rows: Sequence[Row], path: str) -> None:
    """Write the PNG of mean reward, pass@1 and pass@k, of all that are trained and of each lesson, atomically."""
    names = (REWARD, PASS_1, PASS_K)
    lessons = sorted({name.partition("/")[2].partition("/")[2] for row in rows for name in row if _is_of(name, names)})
    own = {f"/{lesson}": lesson for lesson in lessons[:MOST_LESSONS]}
    labels = ("mean reward", "pass@1", "pass@k")
    _plot(rows, {label: {name: "trained"} | {name + end: lesson for end, lesson in own.items()}
                 for label, name in zip(labels, names, strict=True)}, path)  # fmt: skip


def plot_policy(rows: Sequence[Row], path: str) -> None:
    """Write the PNG of entropy, divergences and ratios, atomically."""
    _plot(rows, POLICY, path)


def plot_waits(rows: Sequence[Row], path: str) -> None:
    """Write the PNG of waits, tokens a second and staleness, atomically."""
    _plot(rows, WAITS, path)


def _is_of(name: str, metrics: Sequence[str]) -> bool:
    return any(name.startswith(f"{metric}/") for metric in metrics)


def _plot(rows: Sequence[Row], panels: Mapping[str, Mapping[str, str]], path: str) -> None:
    """A panel for each label whose metrics are in the rows."""
    from matplotlib.figure import Figure  # 0.4 s to import

    logged = {name for row in rows for name in row}
    shown = {label: metrics for label, metrics in panels.items() if logged.intersection(metrics)}
    figure = Figure(figsize=(7, 2.4 * max(len(shown), 1)), layout="constrained")
    axes = figure.subplots(max(len(shown), 1), 1, sharex=True, squeeze=False)[:, 0]
    for panel, (label, metrics) in zip(axes, shown.items(), strict=False):
        present = {metric: name for metric, name in metrics.items() if metric in logged}
        for number, (metric, name) in enumerate(present.items()):
            colour = "black" if number == 0 else f"C{number - 1}"
            panel.plot(*series(rows, metric), color=colour, linewidth=1, label=name)
        panel.set(ylabel=label)
        panel.grid(alpha=0.3)
        if len(present) > 1:
            panel.legend(fontsize="small")
    axes[-1].set(xlabel="step")
    write_figure(figure, path)
