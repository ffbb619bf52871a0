"""Durations as people read them."""

from __future__ import annotations


def readable_duration(duration_s: float) -> str:
    """ "42 s", "3 min 20 s", "5 h 3 min" """
    minutes, seconds = divmod(max(0, round(duration_s)), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:,} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
