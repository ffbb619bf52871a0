"""Count the clusters of duplicates of which no copy is kept.

A stage that judges duplicates keeps one copy of each cluster and rejects the others; `value` is the cluster's size. If
another attribute rejects the kept copy, the cluster has none. Two such stages that rank copies differently reject each
other's copies, and their texts are lost: that is a contradiction.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence

from marin_assets.documents.attributes import Verdict

REASONS = ("exact_duplicate", "near_duplicate")
JUDGED, WITHOUT_COPY, CONTRADICTED = "duplicates_of_", "clusters_without_copy_", "clusters_contradicted_"

log = logging.getLogger(__name__)


def count_clusters(verdicts: Sequence[tuple[str, Verdict]], counts: Counter[str]) -> None:
    """Add a rejected document, with the (attribute, verdict) pairs of all attributes."""
    sizes = [verdict.value or 0 for _, verdict in verdicts if _is_duplicate(verdict)]
    for name, verdict in verdicts:
        if _is_duplicate(verdict):
            counts[f"{JUDGED}{name}"] += 1
        elif verdict.keep and (verdict.value or 0) >= 2:
            counts[f"{WITHOUT_COPY}{name}"] += 1
            # The copy that the other stage keeps belongs to this cluster too, if its own cluster is not larger.
            counts[f"{CONTRADICTED}{name}"] += any(size <= (verdict.value or 0) for size in sizes)


def clusters_of(counts: Mapping[str, int | float], attributes: Sequence[str]) -> dict[str, int | float]:
    """Return what the result has of the attributes that judge duplicates: those with a rejection by REASONS.

    Other attributes have values too. Warns of contradictions.
    """
    clusters: dict[str, int | float] = {}
    for name in attributes:
        if not counts.get(f"{JUDGED}{name}"):
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


def _is_duplicate(verdict: Verdict) -> bool:
    return not verdict.keep and verdict.reason in REASONS
