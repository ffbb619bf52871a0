"""Count the clusters of duplicates of which no copy is kept.

A stage that decides about duplicates keeps one copy of each cluster and rejects the others; `value` is the cluster's
size. If another attribute rejects the kept copy, the cluster has none. Two such stages that rank copies differently
reject each other's copies, and their texts are lost: that is a contradiction.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence

from marin_assets.documents.attributes import Decision

REASONS = ("exact_duplicate", "near_duplicate")
DUPLICATES_OF, WITHOUT_COPY, CONTRADICTED = "duplicates_of_", "clusters_without_copy_", "clusters_contradicted_"

log = logging.getLogger(__name__)


def count_clusters(decisions: Sequence[tuple[str, Decision]], counts: Counter[str]) -> None:
    """Add a rejected document, with the (attribute, decision) pairs of all attributes."""
    sizes = [decision.value or 0 for _, decision in decisions if _is_duplicate(decision)]
    for name, decision in decisions:
        if _is_duplicate(decision):
            counts[f"{DUPLICATES_OF}{name}"] += 1
        elif decision.keep and (decision.value or 0) >= 2:
            counts[f"{WITHOUT_COPY}{name}"] += 1
            # The copy that the other stage keeps belongs to this cluster too, if its own cluster is not larger.
            counts[f"{CONTRADICTED}{name}"] += any(size <= (decision.value or 0) for size in sizes)


def clusters_of(counts: Mapping[str, int | float], attributes: Sequence[str]) -> dict[str, int | float]:
    """Return what the result has of the attributes that decide about duplicates: those with a rejection by REASONS.

    Other attributes have values too. Warns of contradictions.
    """
    clusters: dict[str, int | float] = {}
    for name in attributes:
        if not counts.get(f"{DUPLICATES_OF}{name}"):
            continue
        clusters |= {
            key: n for prefix in (WITHOUT_COPY, CONTRADICTED) if (n := counts.get(key := f"{prefix}{name}", 0))
        }
        if lost := clusters.get(f"{CONTRADICTED}{name}"):
            log.warning(
                "%d clusters of the attribute %r have no copy left: another attribute rejects the copy that it keeps, "
                "as a duplicate. Give both the same ranking of sources (sources= and source_ranking=).", lost, name,
            )  # fmt: skip
    return clusters


def _is_duplicate(decision: Decision) -> bool:
    return not decision.keep and decision.reason in REASONS
