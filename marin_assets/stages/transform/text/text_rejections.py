"""Count the files of text that a stage rejects, by reason and by unknown suffix, and log the first of them."""

from __future__ import annotations

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

UNKNOWN_SUFFIX = "unknown_suffix"
NAMED = 5
"""Names of rejected files, by reason, in the log of a shard."""
NAMED_SUFFIXES = 20
"""Unknown suffixes that a result counts by name; the rarer ones are counted together."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rejected:
    """Takes the place of a file's content or text."""

    reason: str
    """The name by which it is counted."""


class Rejections:
    """Counts rejected files, and remembers the first names of each reason for the log."""

    def __init__(self, counts: Counter[str]) -> None:
        """`counts` gets rejected, rejected_<reason> and unknown_suffix_<suffix>."""
        self._counts = counts
        self._number = Counter[str]()
        self._names: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, name: str, reason: str) -> None:
        """Count a file by its path."""
        self._counts["rejected"] += 1
        self._counts[f"rejected_{reason}"] += 1
        if reason == UNKNOWN_SUFFIX:
            self._counts[f"{UNKNOWN_SUFFIX}_{_suffix_of(name)}"] += 1
        self._number[reason] += 1
        if len(self._names[reason]) < NAMED:
            self._names[reason].append(name)

    def log(self, where: str) -> None:
        """Log a line for each reason. `where` is the folder of the files."""
        for reason, names in sorted(self._names.items()):
            more = ", …" if self._number[reason] > len(names) else ""
            log.warning("%d files of %r are rejected as %s: %s%s", self._number[reason], where, reason,
                        ", ".join(f"{name!r:.200}" for name in names), more)  # fmt: skip


def few_suffixes(counts: Mapping[str, int | float]) -> dict[str, int | float]:
    """Return the counts with the most frequent unknown suffixes, and the sum of the others as "other"."""
    prefix = f"{UNKNOWN_SUFFIX}_"
    by_number = sorted((-number, key) for key, number in counts.items() if key.startswith(prefix))
    few = {key: number for key, number in counts.items() if not key.startswith(prefix)}
    few |= {key: -negative for negative, key in by_number[:NAMED_SUFFIXES]}
    if rest := -sum(negative for negative, _ in by_number[NAMED_SUFFIXES:]):
        few[f"{prefix}other"] = few.get(f"{prefix}other", 0) + rest
    return few


def _suffix_of(name: str) -> str:
    """Return the end of a name without its dot; "none" without one, "other" for what is too long for a suffix."""
    stem, dot, suffix = name.rpartition("/")[2].rpartition(".")
    if not (stem and dot):
        return "none"
    return suffix.lower() if re.fullmatch("[a-z0-9]{1,8}", suffix.lower()) else "other"
