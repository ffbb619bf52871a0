"""Apply attributes to documents: what is kept, and the account of what is not.

In:  documents, and the attributes that any number of stages wrote beside them.
Out: the documents that are kept, shard for shard under the same names;
     waterfall.json   what each attribute took away, for which reason (`waterfall.py` says how)
     rejected.json    for each attribute and reason a sample of the documents
     rejected.html    the same as a page to read

Attributes are applied in the order in which they are given, and the first that rejects a document decides its reason.
What they cut out of documents adds up, as spans of the original text; a document of which only blanks are left is
rejected too. In flat memory: one document with its rows, and the samples.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.documents import SUFFIX, Document, check_format, document_shards, read_documents, write_documents
from marin_assets.documents.attributes import KEPT, Verdict
from marin_assets.documents.shards import output_name
from marin_assets.documents.tokens import token_counter
from marin_assets.stages.consolidate.applied import Applied, ConsolidateError, check_applied
from marin_assets.stages.consolidate.cuts import union, without
from marin_assets.stages.consolidate.join import AttributeRows, attribute_files
from marin_assets.stages.consolidate.rejected_page import render_rejected
from marin_assets.stages.consolidate.samples import RejectedSample
from marin_assets.stages.consolidate.waterfall import REJECT, waterfall_of
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards
from marin_resources.storage.files import StoredFile, write_bytes, write_json
from marin_resources.storage.paths import join

__all__ = ["Applied", "ConsolidateConfig", "ConsolidateError", "consolidate"]

FORMAT_VERSION = 1
EMPTY = "empty_after_cut"
SAMPLES = ".marin/rejected"
DOCUMENT_TOTALS = ("documents", "kept", "rejected", "documents_cut", "characters_cut")
UNIT_TOTALS = ("in", "kept", "rejected", "cut")

Measure = Callable[[str], dict[str, int]]
"""What a text counts: its bytes, and its tokens if there is a tokenizer."""


@dataclass(frozen=True, kw_only=True)
class ConsolidateConfig:
    documents_path: str
    """Documents, as they were when they were judged."""
    attributes: Sequence[Applied]
    """What is applied, in this order; none keeps every document."""
    tokenizer_path: str | None = None
    """Folder of a tokenizer, to tell tokens beside bytes; it takes many times as long. None tells bytes alone."""
    output_path: str = THIS_OUTPUT_PATH
    rejected_per_reason: int = versioned(20)
    """Documents to show of each attribute and reason."""
    rejected_characters: int = versioned(2000)
    """Of each of their texts, so many from the beginning."""
    output_format: str = versioned(SUFFIX)
    """What is written: ".jsonl", ".jsonl.gz", ".jsonl.zst" or ".parquet"."""


@dataclass(frozen=True, kw_only=True)
class ConsolidateShard:
    attributes: tuple[Applied, ...]
    files: tuple[tuple[StoredFile | None, ...], ...]
    """For each input, the file of each attribute."""
    tokenizer_path: str | None
    rejected_per_reason: int
    rejected_characters: int


def consolidate(config: ConsolidateConfig) -> dict[str, Any]:
    """Write the documents that all attributes keep, the waterfall and a sample of the others.

    Returns documents, kept, rejected, each rejected_<attribute>/<reason>, documents_cut, characters_cut, bytes_in,
    bytes_kept, bytes_rejected, bytes_cut, with a tokenizer the same of tokens, each missing_<attribute>, kept_share,
    documents_unaccounted and bytes_unaccounted, which are 0, and by_reason: "<attribute>/<reason>" -> documents, bytes
    and tokens. Raises ConsolidateError for attributes that are not of these documents; of rows, as a ShardError.
    """
    attributes = tuple(config.attributes)
    check_applied(attributes)
    check_format(config.output_format)
    shards = _shards(config, attributes)
    counts = map_shards(consolidate_shard, shards, output_path=config.output_path)
    samples = RejectedSample(config.rejected_per_reason, config.rejected_characters)
    for shard in shards:
        samples.read(shard.outputs[-1])
    waterfall = waterfall_of(counts, attributes)
    rejected = _rejected(config, waterfall, samples)
    write_json(join(config.output_path, "waterfall.json"), waterfall)
    write_json(join(config.output_path, "rejected.json"), rejected)
    write_bytes(join(config.output_path, "rejected.html"), render_rejected(waterfall, rejected).encode())
    return _result(counts, waterfall)


def _shards(config: ConsolidateConfig, attributes: tuple[Applied, ...]) -> list[FileShard]:
    """The documents' shards, each with the attributes' files and, as its last output, a file for its sample."""
    shards = document_shards(config.documents_path, config.output_path, None, suffix=config.output_format)
    documents = [file for shard in shards for file in shard.inputs]
    by_attribute = [attribute_files(applied, documents) for applied in attributes]
    files = dict(zip((file.path for file in documents), zip(*by_attribute, strict=True), strict=False))
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
    ask: ConsolidateShard = shard.config
    measure = _measure(ask.tokenizer_path)
    totals = [*DOCUMENT_TOTALS, *(f"{unit}_{total}" for unit in measure("") for total in UNIT_TOTALS)]
    counts: Counter[str] = Counter(dict.fromkeys(totals, 0))
    samples = RejectedSample(ask.rejected_per_reason, ask.rejected_characters)
    *targets, samples_path = shard.outputs
    for file, attributes, target in zip(shard.inputs, ask.files, targets, strict=True):
        rows = [
            AttributeRows(applied, attribute.path if attribute else None, file.path)
            for applied, attribute in zip(ask.attributes, attributes, strict=True)
        ]
        write_documents(target, _kept(file.path, rows, measure, counts, samples), replace=False)
    samples.write(samples_path)
    return dict(counts)


def _measure(tokenizer_path: str | None) -> Measure:
    if tokenizer_path is None:
        return lambda text: {"bytes": len(text.encode())}
    count_tokens = token_counter(tokenizer_path)
    return lambda text: {"bytes": len(text.encode()), "tokens": count_tokens([text])[0]}


def _kept(
    path: str, attributes: Sequence[AttributeRows], measure: Measure, counts: Counter[str], samples: RejectedSample
) -> Iterator[Document]:
    """The documents of a shard that are kept, as they are written; all are counted."""
    for document in read_documents(path):
        verdicts = []
        for attribute in attributes:  # all of them, also after a rejection: they stay in step
            verdict, has_row = attribute.decide(document.id)
            counts[f"missing_{attribute.name}"] += not has_row
            verdicts.append((attribute.name, verdict))
        outcome = apply_verdicts(document, verdicts)
        _count(document, outcome, measure, counts)
        if outcome.rejected_by:
            samples.add(outcome.rejected_by, document, outcome.verdict)
        elif outcome.cuts:
            yield dataclasses.replace(document, text=outcome.cuts[-1][1])
        else:
            yield document
    for attribute in attributes:
        attribute.finish()


@dataclass(frozen=True, slots=True)
class Outcome:
    cuts: list[tuple[str, str]]
    """(attribute, what it leaves of the text) of each that cuts something, in order."""
    rejected_by: str = ""
    """The attribute that rejects the document, with `verdict`."""
    verdict: Verdict = KEPT


def apply_verdicts(document: Document, verdicts: Sequence[tuple[str, Verdict]]) -> Outcome:
    """What becomes of a document by the (attribute, verdict) of each. Raises ConsolidateError for a cut beyond it."""
    text, spans, cuts = document.text, union(()), list[tuple[str, str]]()
    for name, verdict in verdicts:
        if not verdict.keep:
            return Outcome(cuts, name, verdict)
        if not verdict.cut:
            continue
        spans = union((*spans, *verdict.cut))
        try:
            shorter = without(document.text, spans)
        except ValueError as error:
            raise ConsolidateError(
                f"Attribute {name!r} of document {document.id!r} {error}: it was made of another text. Make it of "
                "these documents."
            ) from None
        if shorter != text:
            cuts.append((name, shorter))
        text = shorter
        if not text.strip():
            return Outcome(cuts, name, Verdict(keep=False, reason=EMPTY, value=verdict.value))
    return Outcome(cuts)


def _count(document: Document, outcome: Outcome, measure: Measure, counts: Counter[str]) -> None:
    sizes = measure(document.text)
    counts.update(documents=1)
    counts.update({f"{unit}_in": size for unit, size in sizes.items()})
    if outcome.rejected_by:
        reason = f"rejected_{outcome.rejected_by}/{outcome.verdict.reason}"
        counts.update({"rejected": 1, reason: 1})
        for unit, size in sizes.items():
            counts.update({f"{unit}_rejected": size, f"{unit}_{reason}": size})
        return
    for name, text in outcome.cuts:
        counts[f"documents_cut_{name}"] += 1
        left = measure(text)
        for unit, size in sizes.items():
            counts.update({f"{unit}_cut": size - left[unit], f"{unit}_cut_{name}": size - left[unit]})
        sizes = left
    if outcome.cuts:
        counts.update(documents_cut=1, characters_cut=len(document.text) - len(outcome.cuts[-1][1]))
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
    units = ["bytes", *(["tokens"] if "tokens_in" in counts else [])]
    totals = [*DOCUMENT_TOTALS, *(f"{unit}_{total}" for unit in units for total in UNIT_TOTALS)]
    accounted = counts["bytes_kept"] + counts["bytes_rejected"] + counts["bytes_cut"]
    return {
        **{key: counts[key] for key in totals},
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
