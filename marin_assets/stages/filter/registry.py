"""Filters by name, "family@set". `thresholds/<family>.json` holds each set of thresholds with its source; the sets of
FineWeb-2, one a language, are made from its table."""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import ModuleType
from typing import Any

from marin_assets.documents.attributes import Decision
from marin_assets.documents.languages.fineweb2 import fineweb2_languages
from marin_assets.stages.filter.statistics import TextStatistics
from marin_assets.step.values import versioned
from marin_resources.types.errors import MarinError
from marin_resources.types.near_names import expected_one_of

Filter = Callable[[TextStatistics, Any], Decision]


@dataclass(frozen=True)
class Family:
    """Filters of one kind. Its file is imported for its first filter: an experiment has few of the families."""

    name: str
    file: str
    """The module in this package that has both of the others."""
    thresholds_class: str

    @property
    def thresholds(self) -> type[Any]:
        return getattr(self._module(), self.thresholds_class)  # type: ignore[no-any-return]

    @property
    def filter(self) -> Filter:
        return getattr(self._module(), f"filter_{self.name}")  # type: ignore[no-any-return]

    def has(self, thresholds: Any) -> bool:
        return type(thresholds).__name__ == self.thresholds_class and isinstance(thresholds, self.thresholds)

    def _module(self) -> ModuleType:
        return importlib.import_module(f"marin_assets.stages.filter.{self.file}")


FAMILIES = {
    family.name: family
    for family in (
        Family("gopher_repetition", "gopher_repetition", "GopherRepetitionThresholds"),
        Family("gopher_quality", "gopher_quality", "GopherQualityThresholds"),
        Family("c4", "c4", "C4Thresholds"),
        Family("fineweb", "fineweb", "FineWebThresholds"),
        Family("dclm_text", "dclm.text", "DclmTextThresholds"),
        Family("dclm_quality", "dclm.quality", "DclmQualityThresholds"),
        Family("dclm_repetition", "dclm.repetition", "DclmRepetitionThresholds"),
        Family("dclm_lines", "dclm.lines", "DclmLinesThresholds"),
        Family("url", "url.filter_url", "UrlThresholds"),
        Family("redpajama", "signals.redpajama_filter", "RedPajamaThresholds"),
    )
}
FINEWEB = ("gopher_repetition@datatrove", "gopher_quality@datatrove", "c4@fineweb", "fineweb@0.01")
"""FineWeb's filters in FineWeb's order."""
DCLM = ("dclm_text@baseline", "dclm_quality@baseline", "dclm_repetition@baseline", "dclm_lines@baseline")
"""DCLM-Baseline's filters in its order: between the first two, it keeps English pages from a score of 0.65 on."""
FINEWEB2 = ("gopher_repetition", "fineweb", "gopher_quality")
"""The families of FineWeb-2's filters in its order."""


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
    sets = {name: entry["thresholds"] for name, entry in json.loads(text).items()}
    if family in FINEWEB2:
        rows = fineweb2_languages()
        sets |= {f"fineweb2-{tag}": _of_fineweb2(family, row, sets.get("datatrove", {})) for tag, row in rows.items()}
    return sets


def _of_fineweb2(family: str, row: dict[str, Any], datatrove: dict[str, Any]) -> dict[str, Any]:
    """The thresholds of a family for one language, and datatrove's, which hold for all. What it disabled is None."""
    if family == "gopher_repetition":
        disabled = dict.fromkeys(("dup_para_frac", "dup_para_char_frac", "dup_line_char_frac"))
        top = {f"top_{n}_gram": share for n, share in row["top_n_grams"].items()}
        duplicates = {f"dup_{n}_gram": share for n, share in row["dup_n_grams"].items()}
        return {**disabled, "dup_line_frac": row["dup_line_frac"], **top, **duplicates}
    if family == "fineweb":
        shares = {"line_punct_ratio": row["line_punct_ratio"], "char_dup_ratio": 0.1, "list_ratio": row["list_ratio"]}
        return {**shares, "short_line_ratio": None, "short_line_length": 30}
    own = ("min_mean_word_length", "max_mean_word_length", "min_alphabetic_word_ratio", "stop_words")
    return {**datatrove, **{name: row[name] for name in own}}


def fineweb_filters() -> tuple[FilterSpec, ...]:
    """Return FineWeb's filters in FineWeb's order."""
    return tuple(map(named, FINEWEB))


def dclm_filters() -> tuple[FilterSpec, ...]:
    """Return DCLM-Baseline's filters in its order."""
    return tuple(map(named, DCLM))


def fineweb2_filters(language: str) -> tuple[FilterSpec, ...]:
    """Return FineWeb-2's filters of a language, such as "deu_Latn", in FineWeb-2's order. Raises FilterError."""
    return tuple(named(f"{family}@fineweb2-{language}") for family in FINEWEB2)


def filter_of_thresholds(thresholds: Any) -> Filter:
    """Return the filter of the family that the thresholds belong to. Raises FilterError for other objects."""
    for family in FAMILIES.values():
        if family.has(thresholds):
            return family.filter
    raise FilterError(
        f"The thresholds are {thresholds!r:.100}, expected those of a family ({', '.join(FAMILIES)}). "
        'Use named("family@set").'
    )


def _thresholds(family: str, values: dict[str, Any], name: str) -> Any:
    kind = FAMILIES[family].thresholds
    fields = {field.name: field.type for field in dataclasses.fields(kind)}
    for key, value in values.items():
        if key not in fields:
            raise FilterError(f"{name!r} has no threshold {key!r}, {expected_one_of(key, fields)}")
        if (isinstance(value, str) and fields[key] != "str") or (isinstance(value, float) and value != value):
            raise FilterError(f"The threshold {key!r} of {name!r} is {value!r}, expected a number or None.")
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in values.items()})
