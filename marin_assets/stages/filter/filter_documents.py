"""Decide about documents by heuristic filters.

In:  documents.
Out: attributes, shard for shard: kept, with the cuts of C4's filter, or rejected by the first filter that rejects.

Filters run in order, each on the text that the filters before it leave. A reason is the filter's family and the missed
threshold, such as "gopher_quality_min_words". With `signals`, every row has a key for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from marin_assets.documents import Document
from marin_assets.documents.attributes import Decision, DecisionRule, write_attributes
from marin_assets.stages.filter.c4 import complement
from marin_assets.stages.filter.registry import FilterError, FilterSpec, filter_of_thresholds, fineweb_filters
from marin_assets.stages.filter.signals.redpajama_text import RedPajamaText
from marin_assets.stages.filter.signals.registry import measure_of, signal_names, version_signals
from marin_assets.stages.filter.statistics import TextStatistics
from marin_assets.stages.filter.words import require_splitter, splitter_named
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.types.near_names import expected_one_of

LANGUAGES = ("english",)


@dataclass(frozen=True, kw_only=True)
class FilterDocumentsConfig:
    documents_path: str
    """Documents to decide about."""
    output_path: str = THIS_OUTPUT_PATH
    filters: Sequence[FilterSpec] = field(default_factory=fineweb_filters)
    """Filters built by `named`, in the order in which they run. `named` versions their thresholds."""
    words: str = versioned("spacy")
    """The word splitter: with "spacy" the decisions equal datatrove's for English; "fast" is an approximation of these;
    "script" is for other languages."""
    language: str = versioned("english")
    """The language of the stop words and of spaCy's rules. Only "english" is supported."""
    signals: Sequence[str] = ()
    """Signals to write into every row, of the whole text: their names, or "redpajama" for all. They enter the version,
    with or without `versioned()`."""

    def __post_init__(self) -> None:
        version_signals(self)

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def filter_documents(config: FilterDocumentsConfig) -> dict[str, int | float]:
    """Decide about documents by filters.

    Returns documents, kept, rejected, each rejected_<reason>, and, if any document was cut, documents_cut and
    characters_cut. Raises FilterError for an unknown filter or language, SplitterError for an unknown splitter,
    SignalError for an unknown signal.
    """
    decision_rule_of(config)
    return dict(write_attributes(config.documents_path, config.output_path, decision_rule_of, config))


def decision_rule_of(config: FilterDocumentsConfig) -> DecisionRule:
    """Return the rule that applies the config's filters. Raises FilterError, SplitterError and SignalError."""
    _check(config)
    splitter = splitter_named(config.words if config.filters else "fast")  # without a filter it splits nothing
    filters = [(filter_of_thresholds(spec.thresholds), spec.thresholds) for spec in config.filters]
    measure = measure_of(config.signals)

    def decide(document: Document) -> Decision:
        return filter_text(TextStatistics(document.text, splitter), filters)

    def decide_with_signals(document: Document) -> Decision:
        statistics = TextStatistics(document.text, splitter)
        decision = filter_text(statistics, filters)
        return replace(decision, fields={**(decision.fields or {}), **measure(statistics.view(RedPajamaText))})

    return decide_with_signals if config.signals else decide


def _check(config: FilterDocumentsConfig) -> None:
    if config.language not in LANGUAGES:
        raise FilterError(f"The language is {config.language!r}, {expected_one_of(config.language, LANGUAGES)}")
    if not signal_names(config.signals) and not config.filters:
        raise FilterError('The config has no filter. Add one, such as named("gopher_quality@datatrove"), or signals.')
    require_splitter(config.words)
    for spec in config.filters:
        filter_of_thresholds(spec.thresholds)


def filter_text(
    statistics: TextStatistics, filters: Sequence[tuple[Callable[[TextStatistics, object], Decision], object]]
) -> Decision:
    """Return the decision of the first filter that rejects, or keep the text with the cuts of all filters."""
    length = len(statistics.text)
    kept = [(0, length)]
    for decide, thresholds in filters:
        decision = decide(statistics, thresholds)
        if not decision.keep:
            return decision
        if decision.cut:
            remaining = complement(list(decision.cut), len(statistics.text))
            statistics = statistics.of("".join([statistics.text[a:b] for a, b in remaining]))
            kept = _within(kept, remaining)
    return Decision(keep=True, cut=tuple(complement(kept, length)))


def _within(kept: list[tuple[int, int]], remaining: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return `left` as spans of the document, given as spans of the text that `kept` leaves of it."""
    spans: list[tuple[int, int]] = []
    at = i = 0
    for a, b in kept:
        while i < len(remaining) and remaining[i][0] < at + b - a:
            first, last = max(remaining[i][0], at), min(remaining[i][1], at + b - a)
            spans.append((a + first - at, a + last - at))
            if remaining[i][1] > last:
                break
            i += 1
        at += b - a
    return spans
