"""Decide about documents by the questions that they contain."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from marin_assets.documents import Document
from marin_assets.documents.attributes import Decision
from marin_assets.stages.decontaminate.arrays import load_array
from marin_assets.stages.decontaminate.ngram_index import Match, NgramIndex, load_index
from marin_assets.stages.decontaminate.words import words_of

if TYPE_CHECKING:
    import numpy as np

AROUND = 25
"""Words of the document on both sides of the n-gram of an example."""


@dataclass(frozen=True, kw_only=True)
class MatchConfig:
    """Config of a shard of find_contamination's `count_shard`."""

    index_path: str
    index_sha256: str
    validation_fraction: float | None


@dataclass(frozen=True, kw_only=True)
class FinderConfig:
    """Config of a shard of find_contamination's `find_shard`."""

    match: MatchConfig
    ignored_path: str
    ignored_sha256: str
    min_matches: int
    min_share: float


def question_sizes(index: NgramIndex, counts: np.ndarray) -> np.ndarray:
    """Count the different n-grams of each question, int64 (questions,).

    `counts` is bool (n-grams,), False for those to leave out.
    """
    import numpy as np  # 0.1 s to import

    _, holders = index.holders_of(np.flatnonzero(counts))
    return np.bincount(holders, minlength=len(index.names))


@dataclass(frozen=True)
class Rule:
    """The n-grams that documents are compared with. Never changed, so all files of a process share it."""

    index: NgramIndex
    counts: np.ndarray
    """bool (n-grams,), False for those to ignore."""
    sizes: np.ndarray
    """int64 (questions,), of `question_sizes`."""
    least: np.ndarray
    """int64 (questions,), n-grams that a document must contain."""


@lru_cache(maxsize=1)
def load_rule(config: FinderConfig) -> Rule:
    """Load the index and the n-grams to ignore, once a process while the config, with their SHA-256, stays the same."""
    import numpy as np

    index = load_index(config.match.index_path, config.match.index_sha256)
    counts = np.ones(index.ngrams, bool)
    counts[np.isin(np.concatenate(index.keys), load_array(config.ignored_path))] = False
    sizes = question_sizes(index, counts)
    return Rule(index=index, counts=counts, sizes=sizes, least=np.minimum(config.min_matches, sizes))


class Finder:
    """Decide about documents, and collect the findings, in memory as large as the evaluations."""

    def __init__(self, config: FinderConfig) -> None:
        import numpy as np

        self.config = config
        rule = load_rule(config)
        self.index, self.counts, self.sizes, self.least = rule.index, rule.counts, rule.sizes, rule.least
        self.seen = np.zeros(self.index.ngrams, bool)
        self.documents = np.zeros(len(self.sizes), np.int64)
        self.best = np.zeros(len(self.sizes))
        self.examples: dict[int, dict[str, Any]] = {}

    def decide(self, document: Document) -> Decision:
        import numpy as np

        words = words_of(document.text)
        match = self.index.match(words)
        counted = self.counts[match.ngrams]
        match = Match(match.ngrams[counted], match.places[counted])
        if not len(match.ngrams):
            return Decision(keep=True, value=0.0)
        rows, holders = self.index.holders_of(match.ngrams)
        questions, hits = np.unique(holders, return_counts=True)
        shares = hits / self.sizes[questions]
        bad = (hits >= self.least[questions]) & (shares >= self.config.min_share)
        value = round(float(shares.max()), 6)
        if not bad.any():
            return Decision(keep=True, value=value)
        self.seen[match.ngrams] = True
        self.documents[questions[bad]] += 1
        better = bad & (shares > self.best[questions])
        self.best[questions[better]] = shares[better]
        for question, share in zip(questions[better].tolist(), shares[better].tolist(), strict=True):
            own = rows[holders == question]
            first = own[np.argmin(match.places[own])]
            place, length = int(match.places[first]), self.index.length_of(int(match.ngrams[first]))
            end = place + length
            self.examples[question] = {
                "document": document.id,
                "share": round(share, 6),
                "words": " ".join(words[place:end]),
                "before": " ".join(words[max(place - AROUND, 0) : place]),
                "after": " ".join(words[end : end + AROUND]),
            }
        return Decision(keep=False, reason="contaminated", value=value)

    def findings(self) -> dict[str, Any]:
        """Return the findings, as JSON."""
        import numpy as np

        questions = {
            str(number): {"documents": int(self.documents[number]), "example": self.examples[number]}
            for number in np.flatnonzero(self.documents).tolist()
        }
        return {"questions": questions, "ngrams": np.flatnonzero(self.seen).tolist()}
