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
from marin_assets.documents.attributes import KEPT, Decision, DecisionRule, write_attributes
from marin_assets.stages.filter.registry import FilterError, FilterSpec, filter_of_thresholds, fineweb_filters
from marin_assets.stages.filter.signals.redpajama_text import RedPajamaText
from marin_assets.stages.filter.signals.registry import measure_of, signal_names, version_signals
from marin_assets.stages.filter.spans import CutText
from marin_assets.stages.filter.statistics import TextStatistics
from marin_assets.stages.filter.url.filter_url import check_url_filters, url_list_files, with_url_lists
from marin_assets.stages.filter.words import ENGLISH, require_splitter, spacy_languages, splitter_named
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources


@dataclass(frozen=True, kw_only=True)
class FilterDocumentsConfig:
    documents_path: str
    """Documents to decide about."""
    output_path: str = THIS_OUTPUT_PATH
    filters: Sequence[FilterSpec] = field(default_factory=fineweb_filters)
    """Filters built by `named`, in the order in which they run. `named` versions their thresholds."""
    words: str = versioned("spacy")
    """The word splitter: with "spacy" the decisions equal datatrove's; "fast" is an approximation of these for English;
    "script" is for languages without rules of spaCy."""
    language: str = versioned(ENGLISH)
    """The language of spaCy's rules: "english", or a tag such as "deu_Latn"."""
    url_lists_path: str | None = None
    """Folder or archive of the lists of filters "url", such as a step that downloads datatrove's wheel."""
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
    SignalError for an unknown signal, and UrlFilterError for lists of addresses that are missing or damaged.
    """
    decision_rule_of(config)
    lists = url_list_files((spec.thresholds for spec in config.filters), config.url_lists_path)
    counts = write_attributes(config.documents_path, config.output_path, decision_rule_of, config, also_read=lists)
    return dict(counts)


def decision_rule_of(config: FilterDocumentsConfig) -> DecisionRule:
    """Return the rule that applies the config's filters.

    Raises FilterError, SplitterError, SignalError, UrlFilterError.
    """
    _check(config)
    splitter = splitter_named(config.words, config.language)
    filters = [
        (filter_of_thresholds(spec.thresholds), with_url_lists(spec.thresholds, config.url_lists_path))
        for spec in config.filters
    ]
    measure = measure_of(config.signals)

    def decide(document: Document) -> Decision:
        return filter_text(TextStatistics(document.text, splitter, document), filters)

    def decide_with_signals(document: Document) -> Decision:
        statistics = TextStatistics(document.text, splitter, document)
        decision = filter_text(statistics, filters)
        return replace(decision, fields={**(decision.fields or {}), **measure(statistics.by(RedPajamaText))})

    return decide_with_signals if config.signals else decide


def _check(config: FilterDocumentsConfig) -> None:
    if not signal_names(config.signals) and not config.filters:
        raise FilterError('The config has no filter. Add one, such as named("gopher_quality@datatrove"), or signals.')
    require_splitter(config.words, config.language)
    for spec in config.filters:
        filter_of_thresholds(spec.thresholds)
        tag = spec.name.partition("@fineweb2-")[2]
        if tag and config.words == "spacy" and config.language != tag:
            expected = f"language={tag!r}" if tag in spacy_languages() else 'words="script"'
            raise FilterError(
                f"The filter {spec.name!r} is for {tag}, and the words are {config.language}. Set {expected}."
            )
    check_url_filters((spec.thresholds for spec in config.filters), config.url_lists_path)


def filter_text(
    statistics: TextStatistics, filters: Sequence[tuple[Callable[[TextStatistics, object], Decision], object]]
) -> Decision:
    """Return the decision of the first filter that rejects, or keep the text with the cuts of all filters."""
    cut_text: CutText | None = None
    for decide, thresholds in filters:
        decision = decide(statistics, thresholds)
        if not decision.keep:
            return decision
        if decision.cut:
            cut_text = (cut_text or CutText(statistics.text)).without(list(decision.cut))
            statistics = statistics.of(cut_text.text)
    return KEPT if cut_text is None else Decision(keep=True, cut=cut_text.cut)
