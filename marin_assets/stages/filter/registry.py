"""Filters by name, "family@set". `thresholds/<family>.json` holds each set of thresholds with its source."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from marin_assets.documents.attributes import Decision
from marin_assets.stages.filter.c4 import C4Thresholds, filter_c4
from marin_assets.stages.filter.fineweb import FineWebThresholds, filter_fineweb
from marin_assets.stages.filter.gopher_quality import GopherQualityThresholds, filter_gopher_quality
from marin_assets.stages.filter.gopher_repetition import GopherRepetitionThresholds, filter_gopher_repetition
from marin_assets.stages.filter.statistics import TextStatistics
from marin_assets.step.values import versioned
from marin_resources.types.errors import MarinError
from marin_resources.types.near_names import expected_one_of

Filter = Callable[[TextStatistics, Any], Decision]

FAMILIES: dict[str, tuple[type[Any], Filter]] = {  # the thresholds and the filter of each family
    "gopher_repetition": (GopherRepetitionThresholds, filter_gopher_repetition),
    "gopher_quality": (GopherQualityThresholds, filter_gopher_quality),
    "c4": (C4Thresholds, filter_c4),
    "fineweb": (FineWebThresholds, filter_fineweb),
}
FINEWEB = ("gopher_repetition@datatrove", "gopher_quality@datatrove", "c4@fineweb", "fineweb@0.01")
"""FineWeb's filters in FineWeb's order."""


class FilterError(MarinError, ValueError):
    """An unknown filter, set of thresholds, threshold or language."""


@dataclass(frozen=True, kw_only=True)
class FilterSpec:
    """A filter in a stage's config, built by `named`."""

    name: str
    """For people; not part of the version."""
    thresholds: Any
    """The thresholds of a family. Their values enter the version, whatever set they come from."""


def named(name: str, **changes: Any) -> FilterSpec:
    """Return the filter `name`, such as "fineweb@0.01", with `changes` to its thresholds.

    Raises FilterError for an unknown name or threshold.
    """
    family, _, set_name = name.partition("@")
    if family not in FAMILIES or set_name not in (sets := threshold_sets(family)):
        raise FilterError(f"The filter is {name!r}, {expected_one_of(name, filter_names())}")
    return FilterSpec(name=name, thresholds=versioned(_thresholds(family, {**sets[set_name], **changes}, name)))


def filter_names() -> list[str]:
    """Return every name that `named` accepts."""
    return [f"{family}@{set_name}" for family in FAMILIES for set_name in threshold_sets(family)]


@cache
def threshold_sets(family: str) -> dict[str, dict[str, Any]]:
    """Return the sets of a family, by name: the values of their thresholds."""
    text = files("marin_assets.stages.filter").joinpath("thresholds", f"{family}.json").read_text(encoding="utf-8")
    return {name: entry["thresholds"] for name, entry in json.loads(text).items()}


def fineweb_filters() -> tuple[FilterSpec, ...]:
    """Return FineWeb's filters in FineWeb's order."""
    return tuple(map(named, FINEWEB))


def filter_of_thresholds(thresholds: Any) -> Filter:
    """Return the filter of the family that the thresholds belong to. Raises FilterError for other objects."""
    for kind, family_filter in FAMILIES.values():
        if isinstance(thresholds, kind):
            return family_filter
    raise FilterError(
        f"The thresholds are {thresholds!r:.100}, expected those of a family ({', '.join(FAMILIES)}). "
        'Use named("family@set").'
    )


def _thresholds(family: str, values: dict[str, Any], name: str) -> Any:
    kind = FAMILIES[family][0]
    fields = [field.name for field in dataclasses.fields(kind)]
    for key, value in values.items():
        if key not in fields:
            raise FilterError(f"{name!r} has no threshold {key!r}, {expected_one_of(key, fields)}")
        if isinstance(value, str) or (isinstance(value, float) and value != value):
            raise FilterError(f"The threshold {key!r} of {name!r} is {value!r}, expected a number or None.")
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in values.items()})
