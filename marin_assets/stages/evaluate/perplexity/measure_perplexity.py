"""Measure a model's bits per byte and perplexity on named sets of texts, by domain.

In:  the folder of a Hugging Face export, and for each set a folder of rows, laid out as documents, as Paloma or as
     Uncheatable Eval (`dataset_formats.py`).
Out: `perplexity.json`, the numbers of each set and of each of its domains; `plots/bits_per_byte.png`; and of each file
     of a set, `tokens/<set>/<number>.parquet`: a row for each text with its tokens, where each ends, and its loss.
     `sums/<set>/<number>.json` has the sums of that file.

An attempt that resumes does not score finished files again: those with their sums.

The columns of a table of tokens:

id, domain, text        strings
token_ids, ends         lists of int32: of each token its id, and where it ends in the text, in characters
nats                    list of float32: the loss of each token
"""

from __future__ import annotations

import io
import logging
import math
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice, tee
from typing import Any

from marin_assets.inference.jax_model import load_model
from marin_assets.inference.local_copy import copy_to_local
from marin_assets.stages.evaluate.perplexity.dataset_formats import LAYOUTS, Text, TextError, read_texts, text_files
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.storage.files import exists, open_atomic, read_json, write_bytes, write_json
from marin_resources.storage.paths import join
from marin_resources.types.near_names import expected_one_of

KINDS = ("jax",)

PERPLEXITY, PLOT, TOKENS = "perplexity.json", "plots/bits_per_byte.png", "tokens"
LOG_EVERY_S = 10.0

log = logging.getLogger(__name__)


ROWS_OF_A_GROUP = 512


MOST_BARS = 60
"""The highest and the lowest of more domains are shown."""
Z95 = 1.96


NATS_PER_BIT = math.log(2)


@dataclass(frozen=True, kw_only=True)
class MeasurePerplexityConfig:
    model_path: str
    """Folder of a Hugging Face export."""
    sets: dict[str, str]
    """Name -> folder of texts."""
    output_path: str = THIS_OUTPUT_PATH
    layouts: dict[str, str] = field(default_factory=lambda: versioned({}))
    """Name -> its layout, one of LAYOUTS; "documents" of a set that is not named."""
    max_texts: int | None = versioned(None)
    """At most so many texts of each file: the first ones. None: all."""
    max_length: int | None = versioned(None)
    """Tokens of context; the model's own window if None."""
    tokens: bool = versioned(True)
    """Whether the loss of every token is stored."""
    batch_size: int = 32
    """Windows of a batch. It changes speed and memory, and losses only in their last digits."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def measure_perplexity(config: MeasurePerplexityConfig) -> dict[str, Any]:
    """Score every token of every text.

    Returns bits_per_byte (the mean over the sets), sets (by set: texts, bytes, tokens, bits_per_byte with its _stderr,
    perplexity), domains (by set and domain: bits_per_byte), texts, texts_without_tokens (such as "", which are in no
    other number), tokens, bytes, files and plots. Raises TextError for an unknown layout, a set without texts or a row
    without one, ModelError for a model that cannot be loaded.
    """
    _check(config)
    files = {name: text_files(path) for name, path in config.sets.items()}
    remaining = [
        (name, i) for name, of in files.items() for i in range(len(of)) if not exists(_sums_path(config, name, i))
    ]
    log.info("%d of %d files to score", len(remaining), sum(map(len, files.values())))
    if remaining:
        scorer = load_scorer(config)
        for done, (name, i) in enumerate(remaining):
            score_file(config, name, i, files[name][i], scorer, f"file {done + 1} of {len(remaining)}, of {name!r}")
    by_domain = {name: _sums_of(config, name, len(of)) for name, of in files.items()}
    without_tokens = sum(sums.without_tokens for of in by_domain.values() for sums in of.values())
    by_domain = {name: {domain: sums for domain, sums in of.items() if sums.texts} for name, of in by_domain.items()}
    for name, set_domains in by_domain.items():
        if not set_domains:
            raise TextError(
                f"The set {name!r} at {config.sets[name]!r} has no text. Leave it out, or give another folder."
            )
    sets = {name: total(domains.values()).numbers() for name, domains in by_domain.items()}
    domains = {name: {domain: sums.numbers() for domain, sums in of.items()} for name, of in by_domain.items()}
    write_json(join(config.output_path, PERPLEXITY), {"sets": sets, "domains": domains})
    plot_bits_per_byte(domains, join(config.output_path, PLOT))
    return {
        "bits_per_byte": math.fsum(numbers["bits_per_byte"] for numbers in sets.values()) / len(sets),
        "sets": sets,
        "domains": {
            name: {domain: numbers["bits_per_byte"] for domain, numbers in of.items()} for name, of in domains.items()
        },
        **{key: sum(int(numbers[key]) for numbers in sets.values()) for key in ("texts", "tokens", "bytes")},
        "texts_without_tokens": without_tokens,
        "files": sum(map(len, files.values())),
        "plots": [PLOT],
    }


def load_scorer(config: MeasurePerplexityConfig) -> Any:
    """Return the TokenScorer of the model."""
    from marin_assets.stages.evaluate.perplexity.token_losses import TokenScorer

    with tempfile.TemporaryDirectory(prefix="perplexity-") as folder:
        model, tokenizer = load_model(copy_to_local(config.model_path, folder))
    return TokenScorer(model, tokenizer, batch_size=config.batch_size, max_length=config.max_length)


def score_file(
    config: MeasurePerplexityConfig, name: str, number: int, file: str, scorer: Any, label: str
) -> dict[str, Sums]:
    """Score one file. Its tokens are written first, its sums last: with them, the file is finished."""
    layout = LAYOUTS[config.layouts.get(name, "documents")]
    empty = Counter[str]()
    texts = islice(read_texts(file, layout, root=config.sets[name], empty=empty), config.max_texts)
    sums: dict[str, Sums] = {}
    rows = _rows(texts, scorer, sums, label)
    if config.tokens:
        write_tokens(tokens_path(config.output_path, name, number), rows)
    else:
        for _ in rows:
            pass
    for domain, count in empty.items():
        sums.setdefault(domain, Sums()).without_tokens += count
    write_json(_sums_path(config, name, number), {domain: asdict(of_domain) for domain, of_domain in sums.items()})
    return sums


def _rows(texts: Iterator[Text], scorer: Any, sums: dict[str, Sums], label: str) -> Iterator[dict[str, Any]]:
    """Score the texts, add them up by domain, and yield a row for each."""
    kept, read = tee(texts)
    started = logged_at = time.monotonic()
    tokens = 0
    for text, losses in zip(kept, scorer.losses(text_read.text for text_read in read), strict=True):
        count, nats = len(losses.ids), float(losses.nats.astype("float64").sum())
        of_domain = sums.setdefault(text.domain, Sums())
        if count:
            of_domain.add(bytes_=len(text.text.encode()), tokens=count, nats=nats)
        else:
            of_domain.without_tokens += 1
        tokens += count
        if (now := time.monotonic()) - logged_at > LOG_EVERY_S:
            logged_at = now
            log.info("%s: %d tokens, %.0f a second", label, tokens, tokens / (now - started))
        yield {
            "id": text.id,
            "domain": text.domain,
            "text": text.text,
            "token_ids": losses.ids,
            "ends": losses.ends,
            "nats": losses.nats.tolist(),
        }


def tokens_path(output: str, name: str, number: int) -> str:
    """The path of the tokens of one file of a set."""
    return join(output, TOKENS, name, f"{number:05}.parquet")


def _sums_path(config: MeasurePerplexityConfig, name: str, number: int) -> str:
    return join(config.output_path, "sums", name, f"{number:05}.json")


def _sums_of(config: MeasurePerplexityConfig, name: str, files: int) -> dict[str, Sums]:
    """By domain, over the files of a set."""
    by_domain: dict[str, list[Sums]] = {}
    for number in range(files):
        stored: Mapping[str, Any] = read_json(_sums_path(config, name, number))
        for domain, fields in stored.items():
            by_domain.setdefault(domain, []).append(Sums(**fields))
    return {domain: total(of) for domain, of in sorted(by_domain.items())}


def _check(config: MeasurePerplexityConfig) -> None:
    if not config.sets:
        raise TextError("MeasurePerplexityConfig has no sets, expected a folder of texts by name. Pass sets={…}.")
    for name in config.sets:
        if not name or "/" in name or name.startswith("."):
            raise TextError(
                f"A set is called {name!r}, expected a name without '/' and without a dot in front. Rename it."
            )
    for name, layout in config.layouts.items():
        if name not in config.sets:
            raise TextError(f"layouts names {name!r}, {expected_one_of(name, sorted(config.sets), 'sets')}")
        if layout not in LAYOUTS:
            raise TextError(f"The layout of {name!r} is {layout!r}, {expected_one_of(layout, LAYOUTS)}")


def write_tokens(path: str, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write one table atomically, some rows at a time. Return the number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [
            *((name, pa.string()) for name in ("id", "domain", "text")),
            *((name, pa.list_(pa.int32())) for name in ("token_ids", "ends")),
            ("nats", pa.list_(pa.float32())),
        ]
    )
    count, remaining = 0, iter(rows)
    with open_atomic(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        while group := list(islice(remaining, ROWS_OF_A_GROUP)):
            writer.write_table(pa.Table.from_pylist(group, schema=schema))
            count += len(group)
    return count


def plot_bits_per_byte(domains: Mapping[str, Mapping[str, Mapping[str, float]]], path: str) -> None:
    """Write the PNG, atomically. `domains`: set -> domain -> its numbers."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # 0.4 s to import
    from matplotlib.figure import Figure

    bars = [
        (f"{name}: {domain}" if domain != name else name, numbers)
        for name, of in domains.items()
        for domain, numbers in of.items()
    ]
    bars.sort(key=lambda bar: bar[1]["bits_per_byte"])
    left_out = max(len(bars) - MOST_BARS, 0)
    shown = bars if not left_out else [*bars[: MOST_BARS // 2], *bars[-MOST_BARS // 2 :]]
    figure = Figure(figsize=(7, 0.9 + 0.26 * len(shown)), layout="constrained")
    axes = figure.add_subplot()
    errors = [Z95 * numbers.get("bits_per_byte_stderr", 0.0) for _, numbers in shown]
    axes.barh(
        [label for label, _ in shown],
        [numbers["bits_per_byte"] for _, numbers in shown],
        xerr=errors,
        color="tab:blue",
        error_kw={"elinewidth": 1, "ecolor": "0.3"},
    )
    axes.tick_params(axis="y", labelsize=8)
    note = f"; {left_out} domains between are left out" if left_out else ""
    axes.set(xlabel=f"bits per byte, 95% confidence interval{note}", ylim=(-0.7, len(shown) - 0.3))
    axes.grid(alpha=0.3, axis="x")
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None})
    write_bytes(path, buffer.getvalue())


@dataclass(kw_only=True)
class Sums:
    """Sums over texts: of their bytes in UTF-8, of their tokens, and of their losses in nats."""

    texts: int = 0
    bytes: int = 0
    tokens: int = 0
    nats: float = 0.0
    nats2: float = 0.0
    bytes2: int = 0
    nats_by_bytes: float = 0.0
    """Sums of squares and of products, for the error of a ratio."""
    without_tokens: int = 0
    """Further texts, such as "", which have nothing to predict."""

    def add(self, *, bytes_: int, tokens: int, nats: float) -> None:
        self.texts += 1
        self.bytes += bytes_
        self.tokens += tokens
        self.nats += nats
        self.nats2 += nats * nats
        self.bytes2 += bytes_ * bytes_
        self.nats_by_bytes += nats * bytes_

    def numbers(self) -> dict[str, float | int]:
        """Return texts, bytes, tokens, bits_per_byte with its standard error, and perplexity (of a token).

        The error is that of a ratio of two sums over texts (Cochran 1977, 6.3): texts are independent, tokens of one
        text are not. It is left out for a single text.
        """
        bits_per_byte = self.nats / NATS_PER_BIT / self.bytes
        numbers: dict[str, float | int] = {
            "texts": self.texts,
            "bytes": self.bytes,
            "tokens": self.tokens,
            "bits_per_byte": bits_per_byte,
            "perplexity": math.exp(min(self.nats / self.tokens, 700.0)),
        }
        if self.texts > 1:
            numbers["bits_per_byte_stderr"] = self._error()
        return numbers

    def _error(self) -> float:
        ratio = self.nats / self.bytes
        squares = self.nats2 - 2 * ratio * self.nats_by_bytes + ratio * ratio * self.bytes2
        return math.sqrt(max(squares, 0.0) * self.texts / (self.texts - 1)) / self.bytes / NATS_PER_BIT


def total(of: Iterable[Sums]) -> Sums:
    """The sums of all."""
    totals = Sums()
    for sums in of:
        for name, value in vars(sums).items():
            setattr(totals, name, getattr(totals, name) + value)
    return totals
