"""Put two models' losses of every token side by side, on the texts that both have read.

In:  two outputs of measure_perplexity, with tokens, of the same sets.
Out: `comparison.html`, one page without script or other files: bits per byte of both by set and domain, and the texts
     in two columns, each token coloured by its loss, underlined where one of the models is clearly better at it;
     `comparison.json`, the numbers.

The texts on the page are those on which the models differ most, a byte, until the page is full. The tokenizers may
differ: losses are compared by the characters that they are of.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from marin_assets.stages.evaluate.perplexity.dataset_formats import TextError
from marin_assets.stages.evaluate.perplexity.loss_page import Compared, page_of, size_of_text
from marin_assets.stages.evaluate.perplexity.loss_spans import Losses
from marin_assets.stages.evaluate.perplexity.measure_perplexity import TOKENS, tokens_path
from marin_assets.stages.evaluate.perplexity.sums import Sums, total
from marin_assets.stages.evaluate.perplexity.token_table import read_tokens
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.storage.files import folders_in, names_in, write_bytes, write_json
from marin_resources.storage.paths import join

KINDS = ("html",)

PAGE, NUMBERS = "comparison.html", "comparison.json"

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class CompareLossesConfig:
    first_path: str
    second_path: str
    """Outputs of measure_perplexity."""
    output_path: str = THIS_OUTPUT_PATH
    first: str = versioned("first")
    second: str = versioned("second")
    """Names of the models on the page."""
    max_page_bytes: int = versioned(10_000_000)
    """The page ends before it is larger; every number is of all texts."""


def compare_losses(config: CompareLossesConfig) -> dict[str, Any]:
    """Compare the losses of every text, and show those that differ most.

    Returns texts, shown (on the page), only_one (texts that one of the models has not read), gap_bits_per_byte (second
    minus first, over all texts) with its _stderr, domains (by "set: domain": first, second, gap), page and bytes.
    Raises TextError for outputs without tokens, or without a text in common.
    """
    differences: dict[str, Sums] = {}
    sides: dict[str, tuple[Sums, Sums]] = {}
    ranked: list[tuple[float, str, int, int]] = []
    only_one = 0
    for place, domain, both in _texts(config):
        if both is None:
            only_one += 1
            continue
        if not both.first.ends or not both.second.ends:
            continue  # a tokenizer that makes nothing of it
        name = f"{place[0]}: {domain}"
        size, tokens = len(both.text.encode()), len(both.first.ends)
        first_nats, second_nats = sum(both.first.nats), sum(both.second.nats)
        differences.setdefault(name, Sums()).add(bytes_=size, tokens=tokens, nats=second_nats - first_nats)
        mine, theirs = sides.setdefault(name, (Sums(), Sums()))
        mine.add(bytes_=size, tokens=tokens, nats=first_nats)
        theirs.add(bytes_=size, tokens=len(both.second.ends), nats=second_nats)
        ranked.append((-abs(second_nats - first_nats) / size, *place))
    if not ranked:
        raise TextError(
            f"{config.first_path!r} and {config.second_path!r} have no text in common. Measure both on the same sets, "
            "with tokens=True."
        )
    rows = {name: _row(*sides[name], differences[name]) for name in sorted(differences)}
    gap = total(differences.values()).numbers()
    shown = _chosen(config, sorted(ranked))
    html = page_of(config.first, config.second, rows, shown, of=len(ranked))
    write_bytes(join(config.output_path, PAGE), html)
    result = {
        "texts": len(ranked),
        "shown": len(shown),
        "only_one": only_one,
        "gap_bits_per_byte": gap["bits_per_byte"],
        "gap_bits_per_byte_stderr": gap.get("bits_per_byte_stderr"),
        "domains": rows,
    }
    write_json(join(config.output_path, NUMBERS), result)
    return {**result, "page": PAGE, "bytes": len(html)}


def _texts(config: CompareLossesConfig) -> Iterator[tuple[tuple[str, int, int], str, Compared | None]]:
    """Yield ((set, file, row), domain, both models' losses), or None in place of them for a text that one lacks."""
    for name in _sets_in_common(config):
        for number in range(_files_in_common(config, name)):
            first, second = (
                _by_id(tokens_path(path, name, number)) for path in (config.first_path, config.second_path)
            )
            for row, (id_, mine) in enumerate(first.items()):
                theirs = second.pop(id_, None)
                same = theirs is not None and theirs["text"] == mine["text"]
                yield (name, number, row), mine["domain"], _both(name, mine, theirs) if same else None
            for row, theirs in enumerate(second.values(), len(first)):
                yield (name, number, row), theirs["domain"], None


def _both(name: str, mine: Mapping[str, Any], theirs: Mapping[str, Any] | None) -> Compared:
    assert theirs is not None
    return Compared(
        id=mine["id"],
        domain=f"{name}: {mine['domain']}",
        text=mine["text"],
        first=Losses(mine["ends"], mine["nats"]),
        second=Losses(theirs["ends"], theirs["nats"]),
    )


def _by_id(path: str) -> dict[tuple[str, int], dict[str, Any]]:
    """The rows of a table by id; rows with one id, by their order too."""
    times: Counter[str] = Counter()
    rows = {}
    for row in read_tokens(path):
        rows[row["id"], times[row["id"]]] = row
        times[row["id"]] += 1
    return rows


def _sets_in_common(config: CompareLossesConfig) -> list[str]:
    sets = []
    for path in (config.first_path, config.second_path):
        names = folders_in(join(path, TOKENS))
        if not names:
            raise TextError(f"{path!r} has no tokens, expected an output of measure_perplexity with tokens=True.")
        sets.append(names)
    return sorted(set(sets[0]) & set(sets[1]))


def _files_in_common(config: CompareLossesConfig, name: str) -> int:
    return min(len(names_in(join(path, TOKENS, name))) for path in (config.first_path, config.second_path))


def _chosen(config: CompareLossesConfig, ranked: list[tuple[float, str, int, int]]) -> list[Compared]:
    """The texts that differ most, as many as fit into the page, read once more."""
    rank = {tuple(place): number for number, (_, *place) in enumerate(ranked)}
    best: list[tuple[int, int, Compared]] = []
    held = 0
    for place, _, both in _texts(config):
        if both is None or place not in rank:
            continue
        size = size_of_text(both)
        best.append((rank[place], size, both))
        held += size
        if held > 2 * config.max_page_bytes:
            best = _fitting(best, config.max_page_bytes)
            held = sum(size for _, size, _ in best)
    return [both for _, _, both in _fitting(best, config.max_page_bytes)]


def _fitting(candidates: list[tuple[int, int, Compared]], most: int) -> list[tuple[int, int, Compared]]:
    kept, size = [], 0
    for candidate in sorted(candidates, key=lambda candidate: candidate[0]):
        size += candidate[1]
        if size > most:
            break
        kept.append(candidate)
    return kept


def _row(first: Sums, second: Sums, difference: Sums) -> dict[str, Any]:
    gap = difference.numbers()
    return {
        "texts": first.texts,
        "bytes": first.bytes,
        "first": first.numbers()["bits_per_byte"],
        "second": second.numbers()["bits_per_byte"],
        "gap": gap["bits_per_byte"],
        "gap_stderr": gap.get("bits_per_byte_stderr"),
    }
