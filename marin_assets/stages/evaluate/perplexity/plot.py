"""Plot bits per byte by set and domain, with errors: a bar for each domain, the highest first."""

from __future__ import annotations

import io
from collections.abc import Mapping

from marin_resources.storage.files import write_bytes

MOST_BARS = 60
"""The highest and the lowest of more domains are shown."""
Z95 = 1.96


def plot_bits_per_byte(domains: Mapping[str, Mapping[str, Mapping[str, float]]], path: str) -> None:
    """Write the PNG, atomically. `domains`: set -> domain -> its numbers."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # 0.4 s to import
    from matplotlib.figure import Figure

    bars = [
        (f"{name}: {domain}" if domain != name else name, numbers)
        for name, of in domains.items()
        for domain, numbers in of.items()
    ]
    bars.sort(key=lambda bar: bar[1]["bits_per_byte"])
    left_out = max(len(bars) - MOST_BARS, 0)
    shown = bars if not left_out else [*bars[: MOST_BARS // 2], *bars[-MOST_BARS // 2 :]]
    figure = Figure(figsize=(7, 0.9 + 0.26 * len(shown)), layout="constrained")
    axes = figure.add_subplot()
    errors = [Z95 * numbers.get("bits_per_byte_stderr", 0.0) for _, numbers in shown]
    axes.barh(
        [label for label, _ in shown],
        [numbers["bits_per_byte"] for _, numbers in shown],
        xerr=errors,
        color="tab:blue",
        error_kw={"elinewidth": 1, "ecolor": "0.3"},
    )
    axes.tick_params(axis="y", labelsize=8)
    note = f"; {left_out} domains between are left out" if left_out else ""
    axes.set(xlabel=f"bits per byte, 95% confidence interval{note}", ylim=(-0.7, len(shown) - 0.3))
    axes.grid(alpha=0.3, axis="x")
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None})
    write_bytes(path, buffer.getvalue())
