"""Apply attributes to documents, and account for everything that is removed.

In:  documents, and the attributes that any number of stages wrote beside them.
Out: the kept documents, shard for shard under the same names;
     waterfall.json   documents and bytes that each attribute removed, by reason (format: `waterfall.py`)
     rejected.json    for each attribute and reason, a sample of the rejected documents
     rejected.html    the same as a page to read

Attributes are applied in the given order, and the first that rejects a document decides its reason. Cuts add up, as
spans of the original text; a document with nothing but whitespace left is rejected too. Memory is flat: one document
with its rows, and the samples.

A stage that decides about duplicates keeps one copy of each cluster and rejects the others; `value` is the cluster's
size. If another attribute rejects the kept copy, the cluster has none. Two such stages that rank copies differently
reject each other's copies, and their texts are lost: that is a contradiction.
"""

from __future__ import annotations

import dataclasses
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.documents import (
    SUFFIX,
    Document,
    DocumentFiles,
    check_format,
    document_files,
    document_shards,
    read_documents,
    write_documents,
)
from marin_assets.documents.attributes import KEPT, Decision
from marin_assets.documents.caches.tokens import token_counter
from marin_assets.documents.shards import output_name
from marin_assets.stages.consolidate.attribute_spec import Applied, ConsolidateError, check_applied
from marin_assets.stages.consolidate.join import AttributeRows, attribute_files
from marin_assets.stages.consolidate.rejected_page import render_rejected
from marin_assets.stages.consolidate.samples import RejectedSample
from marin_assets.stages.consolidate.waterfall import REJECT, units_of, waterfall_of
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard, folder_state
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards
from marin_resources.storage.files import StoredFile, write_bytes, write_json
from marin_resources.storage.paths import join

_Spans = list[tuple[int, int]]

__all__ = ["Applied", "ConsolidateConfig", "ConsolidateError", "consolidate"]

FORMAT_VERSION = 1
EMPTY = "empty_after_cut"
SAMPLES = ".marin/rejected"
DOCUMENT_TOTALS = ("documents", "kept", "rejected", "documents_cut", "characters_cut")
UNIT_TOTALS = ("in", "kept", "rejected", "cut")

Measure = Callable[[str], dict[str, int]]
"""Size of a text by unit: its bytes, and its tokens if a tokenizer is given."""


REASONS = ("exact_duplicate", "near_duplicate")
DUPLICATES_OF, WITHOUT_COPY, CONTRADICTED = "duplicates_of_", "clusters_without_copy_", "clusters_contradicted_"

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ConsolidateConfig:
    documents_path: str
    """The documents of the attributes, unchanged."""
    attributes: Sequence[Applied]
    """Attributes to apply, in this order; an empty list keeps every document."""
    tokenizer_path: str | None = None
    """Folder of a tokenizer, to count tokens beside bytes, which takes many times as long. None counts only bytes."""
    output_path: str = THIS_OUTPUT_PATH
    rejected_per_reason: int = versioned(20)
    """Documents in the sample of each attribute and reason."""
    rejected_characters: int = versioned(2000)
    """Characters of each sampled text, from its beginning."""
    output_format: str = versioned(SUFFIX)
    """Format of the documents: ".jsonl", ".jsonl.gz", ".jsonl.zst" or ".parquet"."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


@dataclass(frozen=True, kw_only=True)
class ConsolidateShard:
    """Config of a shard of `consolidate_shard`."""

    attributes: tuple[Applied, ...]
    files: tuple[tuple[StoredFile | None, ...], ...]
    """For each input, the file of each attribute."""
    tokenizer_path: str | None
    rejected_per_reason: int
    rejected_characters: int


def consolidate(config: ConsolidateConfig) -> dict[str, Any]:
    """Write the documents that all attributes keep, the waterfall and a sample of the rejected documents.

    Returns documents, kept, rejected, each rejected_<attribute>/<reason>, documents_cut, characters_cut, bytes_in,
    bytes_kept, bytes_rejected, bytes_cut, with a tokenizer the same for tokens, each missing_<attribute>, kept_share,
    documents_unaccounted and bytes_unaccounted, which are 0, by_reason: "<attribute>/<reason>" -> documents, bytes and
    tokens, and of attributes that decide about duplicates each clusters_without_copy_<attribute>, clusters whose kept
    copy another attribute rejects, and clusters_contradicted_<attribute>, those where it does so as a duplicate. Raises
    ConsolidateError if an attribute does not belong to the documents; for a row, as a ShardError.
    """
    attributes = tuple(config.attributes)
    check_applied(attributes)
    check_format(config.output_format)
    documents = document_files(config.documents_path)
    shards = _shards(config, documents, attributes)
    counts = map_shards(consolidate_shard, shards, output_path=config.output_path)
    samples = RejectedSample(config.rejected_per_reason, config.rejected_characters)
    for shard in shards:
        samples.read(shard.outputs[-1])
    waterfall = waterfall_of(counts, attributes)
    rejected = _rejected(config, waterfall, samples)
    write_json(join(config.output_path, "waterfall.json"), waterfall)
    write_json(join(config.output_path, "rejected.json"), rejected)
    write_bytes(join(config.output_path, "rejected.html"), render_rejected(waterfall, rejected).encode())
    clusters = clusters_of(counts, [applied.name for applied in attributes])
    return {**_result(counts, waterfall), **clusters, **documents.counts}


def _check(config: ConsolidateConfig) -> None:
    check_applied([applied.without_versions() for applied in config.attributes])
    check_format(config.output_format)


def _shards(config: ConsolidateConfig, documents: DocumentFiles, attributes: tuple[Applied, ...]) -> list[FileShard]:
    """Return the documents' shards, each with the attributes' files and, as its last output, the file of its sample."""
    tokenizer = [] if config.tokenizer_path is None else [folder_state(config.tokenizer_path)]
    shards = document_shards(documents, config.output_path, None, suffix=config.output_format, also_read=tokenizer)
    by_attribute = [attribute_files(applied, documents.shards) for applied in attributes]
    files = dict(zip((file.path for file in documents.shards), zip(*by_attribute, strict=True), strict=False))
    return [
        dataclasses.replace(
            shard,
            outputs=(*shard.outputs, join(config.output_path, SAMPLES, output_name(shard.inputs[0], ".jsonl.zst"))),
            config=ConsolidateShard(
                attributes=attributes,
                files=tuple(files.get(file.path, ()) for file in shard.inputs),
                tokenizer_path=config.tokenizer_path,
                rejected_per_reason=config.rejected_per_reason,
                rejected_characters=config.rejected_characters,
            ),
        )
        for shard in shards
    ]


def consolidate_shard(shard: FileShard) -> Counts:
    config: ConsolidateShard = shard.config
    measure = _measure(config.tokenizer_path)
    counts: Counter[str] = Counter(dict.fromkeys(_totals(measure("")), 0))
    samples = RejectedSample(config.rejected_per_reason, config.rejected_characters)
    *targets, samples_path = shard.outputs
    for file, attributes, target in zip(shard.inputs, config.files, targets, strict=True):
        rows = [
            AttributeRows(applied, attribute.path if attribute else None, file.path)
            for applied, attribute in zip(config.attributes, attributes, strict=True)
        ]
        write_documents(target, _kept(file.path, rows, measure, counts, samples), replace=False)
    samples.write(samples_path)
    return dict(counts)


def _measure(tokenizer_path: str | None) -> Measure:
    if tokenizer_path is None:
        return lambda text: {"bytes": len(text.encode())}
    count_tokens = token_counter(tokenizer_path)
    return lambda text: {"bytes": len(text.encode()), "tokens": count_tokens([text])[0]}


def _totals(units: Iterable[str]) -> list[str]:
    """Return the names of the counts that every result has."""
    return [*DOCUMENT_TOTALS, *(f"{unit}_{total}" for unit in units for total in UNIT_TOTALS)]


def _kept(
    path: str, attributes: Sequence[AttributeRows], measure: Measure, counts: Counter[str], samples: RejectedSample
) -> Iterator[Document]:
    """Yield the documents of a shard to keep, without their cuts; count all documents."""
    for document in read_documents(path):
        decisions = []
        for attribute in attributes:  # all of them, also after a rejection, so that all files advance together
            decision, has_row = attribute.decide(document.id)
            counts[f"missing_{attribute.name}"] += not has_row
            decisions.append((attribute.name, decision))
        combined = combine(document, decisions)
        _count(document, combined, measure, counts)
        if combined.rejected_by:
            samples.add(combined.rejected_by, document, combined.decision)
            count_clusters(decisions, counts)
        elif combined.cuts:
            yield dataclasses.replace(document, text=combined.cuts[-1][1])
        else:
            yield document
    for attribute in attributes:
        attribute.finish()


@dataclass(frozen=True, slots=True)
class Combined:
    """The combined effect of all attributes on one document."""

    cuts: list[tuple[str, str]]
    """(attribute, text left after it) of each attribute that cuts something, in order."""
    rejected_by: str = ""
    """The attribute that rejects the document, with `decision`; empty if it is kept."""
    decision: Decision = KEPT


def combine(document: Document, decisions: Sequence[tuple[str, Decision]]) -> Combined:
    """Combine the (attribute, decision) pairs of a document. Raises ConsolidateError for a cut beyond its text."""
    text, spans, cuts = document.text, union(()), list[tuple[str, str]]()
    for name, decision in decisions:
        if not decision.keep:
            return Combined(cuts, name, decision)
        if not decision.cut:
            continue
        spans = union((*spans, *decision.cut))
        try:
            shorter = without(document.text, spans)
        except ValueError as error:
            raise ConsolidateError(
                f"Attribute {name!r} of document {document.id!r} {error}: it was computed from another text. Compute "
                "it from these documents."
            ) from None
        if shorter != text:
            cuts.append((name, shorter))
        text = shorter
        if not text.strip():
            return Combined(cuts, name, Decision(keep=False, reason=EMPTY, value=decision.value))
    return Combined(cuts)


def _count(document: Document, combined: Combined, measure: Measure, counts: Counter[str]) -> None:
    sizes = measure(document.text)
    counts.update(documents=1)
    counts.update({f"{unit}_in": size for unit, size in sizes.items()})
    if combined.rejected_by:
        reason = f"rejected_{combined.rejected_by}/{combined.decision.reason}"
        counts.update({"rejected": 1, reason: 1})
        for unit, size in sizes.items():
            counts.update({f"{unit}_rejected": size, f"{unit}_{reason}": size})
        return
    for name, text in combined.cuts:
        counts[f"documents_cut_{name}"] += 1
        remaining = measure(text)
        for unit, size in sizes.items():
            counts.update({f"{unit}_cut": size - remaining[unit], f"{unit}_cut_{name}": size - remaining[unit]})
        sizes = remaining
    if combined.cuts:
        counts.update(documents_cut=1, characters_cut=len(document.text) - len(combined.cuts[-1][1]))
    counts.update(kept=1)
    counts.update({f"{unit}_kept": size for unit, size in sizes.items()})


def _rejected(config: ConsolidateConfig, waterfall: dict[str, Any], samples: RejectedSample) -> dict[str, Any]:
    return {
        "format_version": FORMAT_VERSION,
        "per_reason": config.rejected_per_reason,
        "max_characters": config.rejected_characters,
        "rejected": [
            {
                "attribute": step["attribute"],
                "reason": step["reason"],
                "documents": step["documents"],
                "samples": list(samples.of(step["attribute"], step["reason"])),
            }
            for step in waterfall["steps"]
            if step["kind"] == REJECT
        ],
    }


def _result(counts: Counts, waterfall: dict[str, Any]) -> dict[str, Any]:
    units = units_of(counts)
    accounted = counts["bytes_kept"] + counts["bytes_rejected"] + counts["bytes_cut"]
    return {
        **{key: counts[key] for key in _totals(units)},
        **{key: counts[key] for key in sorted(counts) if key.startswith("rejected_")},
        **{key: counts[key] for key in sorted(counts) if key.startswith("missing_") and counts[key]},
        "kept_share": counts["kept"] / max(1, counts["documents"]),
        "documents_unaccounted": counts["documents"] - counts["kept"] - counts["rejected"],
        "bytes_unaccounted": counts["bytes_in"] - accounted,
        "by_reason": {
            f"{step['attribute']}/{step['reason']}": {unit: step[unit] for unit in ("documents", *units)}
            for step in waterfall["steps"]
        },
    }


def union(spans: Iterable[tuple[int, int]]) -> _Spans:
    """Return the same characters as ordered spans that neither overlap nor touch."""
    merged: _Spans = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif start < end:
            merged.append((start, end))
    return merged


def without(text: str, spans: _Spans) -> str:
    """Return `text` without `spans`, which are a union. Raises ValueError for a span beyond the text."""
    if spans and not 0 <= spans[0][0] <= spans[-1][1] <= len(text):
        raise ValueError(f"cuts characters {spans[0][0]} to {spans[-1][1]} of a text of {len(text)}")
    borders = [0, *(border for span in spans for border in span), len(text)]
    return "".join(text[a:b] for a, b in zip(borders[::2], borders[1::2], strict=True))


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
