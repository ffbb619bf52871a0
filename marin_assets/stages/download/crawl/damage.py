"""Counts of what is rejected, damaged or cut. The log names the first damages, and too many are an error."""

from __future__ import annotations

import logging
import lzma
import tarfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from marin_assets.stages.download.warc.members import RawFile
from marin_assets.stages.download.warc.record import DAMAGES, CrawlError

LOGGED_DAMAGES = 20
"""Damages of a shard that the log names."""
log = logging.getLogger(__name__)


class CutError(Exception):
    """A file ends early, or nothing after this place can be read."""


@contextmanager
def cut_errors(raw: RawFile) -> Iterator[None]:
    """Raise CutError in place of the errors of a damaged stream; those of its store or server as they are."""
    try:
        yield
    except (EOFError, OSError, zlib.error, lzma.LZMAError, tarfile.TarError) as error:
        if raw.error is not None:
            raise raw.error from error
        raise CutError(f"{type(error).__name__}: {error}") from error


def count_cut(counts: Counter[str], config: Any, name: str, error: Exception, *, texts: str) -> None:
    """Count a file that is cut. Raises CrawlError, unless `config.allow_cut_files`. `texts` is the count of what was
    read before."""
    if not config.allow_cut_files:
        raise CrawlError(
            f"The file {name!r} is damaged or cut after {counts[texts]:,} {texts} ({error}). Download it again, or "
            f"pass allow_cut_files=True to take the {texts} before it."
        )
    counts["cut_files"] += 1
    log.warning("%r is cut after %s %s (%s)", name, f"{counts[texts]:,}", texts, error)


def reject(counts: Counter[str], reason: str, number: int = 1) -> None:
    counts["rejected"] += number
    counts[f"rejected_{reason}"] += number


def lose(
    counts: Counter[str],
    rejected: tuple[str, str],
    place: str,
    *,
    damages: Sequence[str] = DAMAGES,
    event: str = "a record is lost",
    number: int = 1,
) -> None:
    """Count what is rejected for a reason. The log has `event` with the place and the detail, the second of `rejected`,
    if the reason is one of `damages`."""
    reason, detail = rejected
    if reason in damages and sum(counts[f"rejected_{damage}"] for damage in damages) < LOGGED_DAMAGES:
        log.warning("%s: %s (%s: %s)", place, event, reason, detail)
    reject(counts, reason, number)


def reasons_of(counts: Mapping[str, int | float]) -> str:
    """Reasons and their numbers, for an error: "1,200 low_score, 3 empty"; "none" without any."""
    rejected = {name.removeprefix("rejected_"): n for name, n in counts.items() if name.startswith("rejected_") and n}
    return ", ".join(f"{n:,} {reason}" for reason, n in rejected.items()) or "none"


def require_few_damages(
    counts: Mapping[str, int | float],
    config: Any,
    *,
    damages: Sequence[str] = DAMAGES,
    of: str = "records",
    noun: str = "",
) -> None:
    """Raise CrawlError if the damaged ones are more than `config.max_damaged_fraction` of all, `counts[of]`.

    `damages` are the reasons of damage; `noun` is the word for all of them, by default `of`.
    """
    damaged = {f"rejected_{reason}": counts[f"rejected_{reason}"] for reason in damages}
    number = sum(damaged.values())
    if number > config.max_damaged_fraction * counts[of]:
        raise CrawlError(
            f"{number:,} of the {counts[of]:,} {noun or of} of {config.input_path!r} are damaged "
            f"({reasons_of(damaged)}), more than max_damaged_fraction {config.max_damaged_fraction:g}. The log names "
            "them. Download the files again, or raise max_damaged_fraction."
        )


def require_some(counts: Mapping[str, int | float], path: str, sentence: str, *, of: str, kept: str) -> None:
    """Raise CrawlError if nothing is kept: `counts[kept]` is 0 of `counts[of]`. `sentence` has what to do."""
    if not counts[kept]:
        raise CrawlError(f"None of the {counts[of]:,} {of} of {path!r} is kept ({reasons_of(counts)}). {sentence}")
