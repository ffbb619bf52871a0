"""Numbers of other libraries as Python's numbers."""

from __future__ import annotations

import numbers
from typing import Any


def number_of(value: Any) -> Any:
    """A number of numpy, or an array without dimensions, as Python's number; any other value as it is."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if getattr(value, "shape", None) == () and callable(getattr(value, "item", None)):
        try:
            return value.item()
        except Exception:  # whatever the library raises: an array may be deleted, or on other hosts
            return value
    if isinstance(value, numbers.Integral):
        return int(value)
    return float(value) if isinstance(value, numbers.Real) else value
