"""Draw a plot as PNG: equal plots are equal bytes, and a label is plain text."""

from __future__ import annotations

import io
from typing import Any

LONGEST_LABEL = 32
DPI = 110


def new_figure(width: float, height: float) -> Any:
    """A figure, with its size in inches."""
    from matplotlib.figure import Figure  # 0.4 s to import

    return Figure(figsize=(width, height), dpi=DPI, layout="constrained")


def png_of(figure: Any) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None})
    return buffer.getvalue()


def plot_label(text: str) -> str:
    """The text as a plot can show it: short, and without characters that its font lacks.

    Pass parse_math=False with it, as matplotlib takes a dollar for a formula.
    """
    shown = "".join(character if " " <= character <= "~" else "?" for character in text)
    return shown if len(shown) <= LONGEST_LABEL else f"{shown[: LONGEST_LABEL - 3]}..."
