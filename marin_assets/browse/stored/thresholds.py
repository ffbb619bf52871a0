"""The thresholds of the numbers of an attribute, as far as configs state them: its own, and those of consolidations.

A filter of documents records a value for each rejection alone, and of another measure for each reason. So its
thresholds are those of one reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from marin_assets.browse.places import Places
from marin_assets.browse.stored.lineage import Lineage
from marin_assets.browse.stored.state import OutputState
from marin_assets.browse.stored.verdicts import attribute_paths, is_consolidation
from marin_assets.stages.consolidate.attribute_spec import VALUE, ConsolidateError

QUALITY = frozenset(
    f"marin_assets.stages.quality.{name}:{name}" for name in ("score_quality", "score_by_encoder", "score_by_function")
)
FILTER = "marin_assets.stages.filter.filter_documents:filter_documents"
CONTAMINATION = "marin_assets.stages.decontaminate.find_contamination:find_contamination"
LEAST, MOST, FROM = "keeps from", "keeps up to", "rejects from"


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """A bound of the value of an attribute."""

    value: float
    rule: str
    """LEAST, MOST or FROM. A value that equals the threshold of LEAST or FROM is on its upper side."""
    field: str
    """The field of the config that states it."""
    output: str
    """The name of the output with that config."""
    text: str
    """The address of that output."""


def own_thresholds(state: OutputState, reason: str) -> list[Threshold]:
    """The thresholds that the output's own config states; of a filter of documents those of a reason."""
    config, result = state.record.config, state.record.result
    if not isinstance(config, Mapping):
        return []
    stated: list[tuple[Any, str, str]] = []
    if state.record.fn_name in QUALITY:
        stated = [(config.get("at_least"), LEAST, "at_least")]
        if config.get("at_least") is None and isinstance(result, Mapping):
            stated = [(result.get("threshold"), LEAST, "threshold, found for its keep_fraction")]
    elif state.record.fn_name == CONTAMINATION and config.get("min_share"):
        stated = [(config["min_share"], FROM, "min_share")]
    elif state.record.fn_name == FILTER and reason in _rules_of_reasons():
        rule, name = _rules_of_reasons()[reason]
        stated = [(value, rule, name) for value in _values_in(config, reason, name)]
    return [_threshold(state, value, rule, field) for value, rule, field in stated if _is_finite(value)]


def all_thresholds(places: Places, state: OutputState, reason: str, key: str = VALUE) -> list[Threshold]:
    """Those of its own config, and of the consolidations that apply it by their own thresholds of the rows' `key`.

    Raises UnavailableError.
    """
    thresholds = own_thresholds(state, reason) if key == VALUE else []
    for reader in Lineage(places, state).readers_of(state):
        if not is_consolidation(reader):
            continue
        try:
            applied = [applied for applied, path in attribute_paths(reader) if places.text_of(path) == state.place.text]
        except ConsolidateError:
            continue  # a record of another form states no threshold
        for attribute in (attribute for attribute in applied if attribute.key == key):
            for field, rule in (("at_least", LEAST), ("at_most", MOST)):
                value = getattr(attribute, field)
                if _is_finite(value):
                    thresholds.append(_threshold(reader, value, rule, f"{field} of {str(attribute.name)[:80]}"))
    return thresholds


def has_several_measures(state: OutputState) -> bool:
    """Whether the value of each reason is that of another measure."""
    return state.record.fn_name == FILTER


def _threshold(state: OutputState, value: Any, rule: str, field: str) -> Threshold:
    name = state.record.name or state.place.text
    return Threshold(value=float(value), rule=rule, field=field, output=name, text=state.place.text)


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**1000 and value == value


@cache
def _rules_of_reasons() -> dict[str, tuple[str, str]]:
    """Reason -> rule and name of its threshold."""
    from marin_assets.stages.filter import fineweb, gopher_quality, gopher_repetition
    from marin_assets.stages.filter.dclm import quality, repetition
    from marin_assets.stages.filter.signals import redpajama_filter

    rules = {
        "c4_min_sentences": (LEAST, "min_sentences"),
        "dclm_lines_max_removed_word_ratio": (MOST, "max_removed_word_ratio"),
    }
    for family, module in (
        ("fineweb", fineweb),
        ("gopher_quality", gopher_quality),
        ("gopher_repetition", gopher_repetition),
        ("dclm_quality", quality),
        ("dclm_repetition", repetition),
        ("redpajama", redpajama_filter),
    ):
        for measure in module.MEASURES:
            rules[f"{family}_{measure.name}"] = (LEAST if measure.is_least else MOST, measure.name)
    return rules


def _values_in(config: Mapping[str, Any], reason: str, name: str) -> Iterator[Any]:
    """The values of a threshold in the filters of a config, of those whose name is that of the reason's family."""
    family = reason.removesuffix(f"_{name}")
    filters = config.get("filters")
    for spec in filters if isinstance(filters, list) else []:
        thresholds = spec.get("thresholds") if isinstance(spec, Mapping) else None
        if isinstance(thresholds, Mapping) and str(spec.get("name")).partition("@")[0] == family:
            yield thresholds.get(name)
