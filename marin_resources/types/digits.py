"""Numbers for readers: six significant digits."""

from __future__ import annotations

DIGITS = 6


def rounded(number: int | float) -> int | float:
    """The number with DIGITS significant digits; a whole one as it is."""
    return number if isinstance(number, int) else float(f"{number:.{DIGITS}g}")
