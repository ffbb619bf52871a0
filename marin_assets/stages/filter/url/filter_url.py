"""Reject documents by their addresses, with the lists of RefinedWeb (Penedo et al. 2023, arXiv:2306.01116, G.1).

The lists are stored in a folder or an archive. Each process reads them once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from marin_assets.documents.attributes import KEPT, Decision
from marin_assets.stages.filter.statistics import TextStatistics
from marin_assets.stages.filter.threshold_filter import rejected
from marin_assets.stages.filter.url.datatrove_rules import DatatroveRules
from marin_assets.stages.filter.url.dclm_rules import DclmRules
from marin_assets.stages.filter.url.errors import UrlFilterError
from marin_assets.stages.filter.url.list_files import list_files
from marin_assets.stages.filter.url.lists import NAMES, read_lists
from marin_assets.stages.filter.url.thresholds import UrlThresholds, check_thresholds, lists_needed
from marin_resources.storage.files import StoredFile

RULES_IN_MEMORY = 2
"""Filters whose lists a process keeps, by 40 MB for one with datatrove's domains."""


@dataclass(frozen=True, slots=True)
class UrlRule:
    """Thresholds with their lists."""

    thresholds: UrlThresholds
    rules: DatatroveRules | DclmRules


def filter_url(statistics: TextStatistics, rule: UrlRule) -> Decision:
    """Reject the document for the first rule that its address meets. The text is not read.

    Raises UrlFilterError for a document without an address, if `missing` is "error".
    """
    url = _address_of(statistics, rule.thresholds)
    if url is None:
        return KEPT if rule.thresholds.missing == "keep" else rejected("url", "missing", 0)
    hit = rule.rules.hit(url)
    return KEPT if hit is None else rejected("url", *hit)


def check_url_filters(thresholds: Iterable[Any], lists_path: str | None) -> None:
    """Raise UrlFilterError for unusable thresholds of URL filters, and for filters without lists or the reverse."""
    of_urls = [values for values in thresholds if isinstance(values, UrlThresholds)]
    for values in of_urls:
        check_thresholds(values)
    if of_urls and lists_path is None:
        raise UrlFilterError(
            "The config has a filter url and no url_lists_path, expected the folder or archive of its lists. Set "
            "url_lists_path, for example to the output of a step that downloads datatrove's wheel."
        )
    if lists_path is not None and not of_urls:
        raise UrlFilterError(
            f"url_lists_path is {lists_path!r} and the config has no filter url, which would read the lists. Add one, "
            'such as named("url@refinedweb"), or leave url_lists_path out.'
        )


def with_url_lists(thresholds: Any, lists_path: str | None) -> Any:
    """Return the thresholds of a URL filter with their lists; those of another family as they are.

    Raises UrlFilterError for lists that are missing or damaged.
    """
    if not isinstance(thresholds, UrlThresholds) or lists_path is None:
        return thresholds
    rules = _rules(thresholds, lists_path, url_list_files([thresholds], lists_path))
    return UrlRule(thresholds, rules)


def url_list_files(thresholds: Iterable[Any], lists_path: str | None) -> tuple[StoredFile, ...]:
    """Return the files that the URL filters among the thresholds read, none without one. Raises UrlFilterError."""
    of_urls = [values for values in thresholds if isinstance(values, UrlThresholds)]
    if not of_urls or lists_path is None:
        return ()
    return list_files(lists_path, {NAMES[values.matching][name] for values in of_urls for name in lists_needed(values)})


@lru_cache(maxsize=RULES_IN_MEMORY)
def _rules(thresholds: UrlThresholds, lists_path: str, files: tuple[StoredFile, ...]) -> DatatroveRules | DclmRules:
    """The rules with the lists of the files in their present state, once for all shards of a process."""
    lists = read_lists(files, lists_path, thresholds.matching, lists_needed(thresholds))
    return DatatroveRules(lists, thresholds) if thresholds.matching == "datatrove" else DclmRules(lists, thresholds)


def _address_of(statistics: TextStatistics, thresholds: UrlThresholds) -> str | None:
    """The address in the metadata, or None without one. Raises UrlFilterError for another value, or by `missing`."""
    document = statistics.document
    value = None if document is None else _value(document.metadata, thresholds.key)
    if isinstance(value, str) and value:
        return value
    if thresholds.missing != "error" and value in (None, ""):
        return None
    name = "A text without a document" if document is None else f"The document {document.id!r}"
    stated = "no address" if value in (None, "") else f"{value!r:.80}"
    raise UrlFilterError(
        f"{name} has {stated} in metadata {thresholds.key!r}, expected its URL as a text. Name the right key in the "
        'threshold "key", or set missing="keep" or missing="reject" for documents without one.'
    )


def _value(metadata: Mapping[str, Any], key: str) -> Any:
    """The value of a key, or of a path such as "a.b"; None without one."""
    if key in metadata or "." not in key:
        return metadata.get(key)
    first, _, rest = key.partition(".")
    inner = metadata.get(first)
    return _value(inner, rest) if isinstance(inner, Mapping) else None
