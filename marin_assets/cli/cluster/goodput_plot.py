"""A plot of goodput by the interval of checkpoints, a line for each size of slices, with Daly's interval on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from marin_assets.cli.options import OptionError

if TYPE_CHECKING:
    from marin_resources.ray_tpu.simulate.study import Outcome

FORMATS = (".svg", ".png")
TICKS_MINUTES = (1, 2, 5, 10, 20, 50, 100)


def plot(outcomes: list[Outcome], path: Path) -> None:
    """Draw the plot. Raises OptionError without matplotlib, or for another kind of file."""
    if path.suffix not in FORMATS:
        raise OptionError(
            f"marin cluster simulate: --plot is {str(path)!r}, expected a name that ends with .svg or .png."
        )
    try:
        import matplotlib
    except ImportError:
        raise OptionError("marin cluster simulate: --plot needs matplotlib: uv sync --extra evaluate.") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.hashsalt"] = "marin"  # the same outcomes give the same file
    figure, axes = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
    for hosts in sorted({outcome.hosts for outcome in outcomes}):
        own = sorted((each for each in outcomes if each.hosts == hosts), key=lambda each: each.interval_s)
        fixed = [each for each in own if not isinstance(each.policy, str)]
        label = f"slices of {hosts} hosts, lost every {own[0].mean_s / 3600:.1f} h"
        [line] = axes.plot([e.interval_s / 60 for e in fixed], [100 * e.useful for e in fixed], marker=".", label=label)
        for each in own:
            if each.policy == "daly":
                axes.plot(
                    each.interval_s / 60, 100 * each.useful, marker="D", color=line.get_color(), markerfacecolor="none"
                )
    axes.plot([], [], marker="D", color="black", markerfacecolor="none", linestyle="", label="Daly's interval")
    axes.set(xscale="log", xlabel="minutes of work between two checkpoints", ylabel="work in the output, % of all time")
    axes.set_xticks(TICKS_MINUTES, [str(minutes) for minutes in TICKS_MINUTES])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)
