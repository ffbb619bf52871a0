"""Expectations: bounds on a number of a step's result. Each is an asset check."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marin_assets.step.values import ConfigError


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """`result[metric]` is within the bounds. Build it with `expect()`."""

    metric: str
    """A number in the step's result; "a.b" names a nested one."""
    at_least: float | None = None
    at_most: float | None = None
    description: str = ""
    warn: bool = False
    """A number outside the bounds is a warning, which fails no run."""

    @property
    def name(self) -> str:
        """Name of the asset check: letters, digits and underscores."""
        return "".join(c if c.isascii() and c.isalnum() else "_" for c in self.metric)

    def value_in(self, result: Mapping[str, Any]) -> float | None:
        """The number in `result`, or None."""
        value: Any = result
        for part in self.metric.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return value if isinstance(value, int | float) else None

    def holds(self, result: Mapping[str, Any]) -> bool:
        value = self.value_in(result)
        if value is None:
            return False
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)

    def describe(self) -> str:
        """ "pages at least 500"."""
        bounds = [f"at least {self.at_least:g}"] if self.at_least is not None else []
        bounds += [f"at most {self.at_most:g}"] if self.at_most is not None else []
        return f"{self.metric} {' and '.join(bounds)}"


def expect(
    metric: str,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    description: str = "",
    warn: bool = False,
) -> Expectation:
    """Expect the number `metric` of a step's result to be within inclusive bounds; with `warn`, others are warnings.

    Raises ConfigError for no bound, and for bounds that no number is within.
    """
    if not isinstance(metric, str) or not metric:
        raise ConfigError(f"expect() got metric={metric!r}, expected the name of a number of the result.")
    if at_least is None and at_most is None:
        raise ConfigError(f"expect({metric!r}) has no bound. Pass at_least=, at_most= or both.")
    for name, bound in (("at_least", at_least), ("at_most", at_most)):
        is_number = isinstance(bound, int | float) and not isinstance(bound, bool) and not math.isnan(bound)
        if bound is not None and not is_number:
            raise ConfigError(f"expect({metric!r}) got {name}={bound!r}, expected a number.")
    if at_least is not None and at_most is not None and at_least > at_most:
        raise ConfigError(
            f"expect({metric!r}) got at_least={at_least!r} and at_most={at_most!r}, expected a number between them. "
            "Exchange the two."
        )
    return Expectation(metric=metric, at_least=at_least, at_most=at_most, description=description, warn=warn)
