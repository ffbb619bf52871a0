"""Attributes: one decision for each document, in files beside the documents. The documents do not change.

    {"id": "...", "keep": false, "reason": "too_short", "value": 49.0}

One line a document, in the documents' order, in a file with the shard's name (always JSONL with zstd, whatever the
format of the shard). `value` is the measured number, or null. A stage that cuts parts out of documents adds "cut":
spans [start, end) of characters of the text, in order and disjoint. A stage may add keys of its own, such as
"language"; `read_attributes` leaves them out unless it is given their names. `consolidate` applies attributes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from marin_assets.documents.document import BadRow, Document, DocumentError
from marin_assets.documents.rows import read_rows, write_rows
from marin_assets.documents.shards import document_files, document_shards, read_documents
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards
from marin_resources.storage.files import StoredFile
from marin_resources.wire.reference import load, reference_to

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Decision:
    """Keep or reject one document."""

    keep: bool
    reason: str = ""
    """The name by which the rejection is counted, such as "too_short"; empty for a kept document."""
    value: float | None = None
    """The measured number, for example the number of words."""
    cut: tuple[tuple[int, int], ...] = ()
    """Spans [start, end) of characters to cut out of a kept document."""
    fields: Mapping[str, Any] | None = None
    """More that is known about the document, by its key in the row, such as its language."""


KEPT = Decision(keep=True)

DecisionRule = Callable[[Document], Decision]


@dataclass(frozen=True, kw_only=True)
class DecideShardConfig:
    """The config of `decide_shard`."""

    decision_rule_of: str
    """Reference to the function that builds the decision rule, as "module:name"."""
    config: Any
    """The argument of that function."""


def write_attributes(
    documents_path: str,
    output_path: str,
    decision_rule_of: Callable[[C], DecisionRule],
    config: C,
    *,
    resources: Resources | None = None,
    also_read: Sequence[StoredFile] = (),
) -> Counts:
    """Decide about every document below `documents_path`; write attributes below `output_path`.

    `decision_rule_of(config)` is called once for each group of shards, on the worker, where it may load a model. It
    must be a function at the top level of a module, and `config` a frozen dataclass. `also_read` is what the rule reads
    beside the documents: if it changes, unfinished work begins again. Returns documents, kept,
    rejected, each rejected_<reason>; if any document was cut, documents_cut and characters_cut; and ignored_files, if
    any exist. Raises ShardError if a rule fails.
    """
    shard_config = DecideShardConfig(decision_rule_of=reference_to(decision_rule_of), config=config)
    documents = document_files(documents_path)
    shards = document_shards(documents, output_path, shard_config, also_read=also_read)
    counts = map_shards(decide_shard, shards, output_path=output_path, resources=resources)
    return {**counts, **documents.counts}


def decide_shard(shard: FileShard) -> Counts:
    decide: DecisionRule = load(shard.config.decision_rule_of)(shard.config.config)
    counts: Counter[str] = Counter(documents=0, kept=0, rejected=0)
    for file, target in zip(shard.inputs, shard.outputs, strict=True):
        write_decisions(target, ((d.id, decide(d)) for d in read_documents(file.path)), counts)
    return dict(counts)


def write_decisions(
    path: str, decisions: Iterable[tuple[str, Decision]], counts: Counter[str], *, replace: bool = False
) -> None:
    """Write one shard of attributes from (id, decision) pairs in the documents' order. Add them to `counts`."""
    write_rows(path, (_row(id, _counted(decision, counts)) for id, decision in decisions), replace=replace)


def read_attributes(path: str, keys: Sequence[str] = ()) -> Iterator[tuple[str, Decision]]:
    """Yield (id, decision) of one shard of attributes, in order, with those of the `keys` that a row has as fields.

    Raises DocumentError for any other line.
    """
    for number, row in read_rows(path):
        if isinstance(row, BadRow) or not _is_decision(row):
            detail = row.detail if isinstance(row, BadRow) else f"{row!r:.120}"
            raise DocumentError(
                f"{path!r} line {number} is not an attribute ({detail}). Expected 'id', 'keep', 'reason', 'value' and, "
                "for parts to cut out, 'cut' with spans [start, end); compute the attributes again."
            )
        cut = tuple((start, end) for start, end in row.get("cut") or ())
        fields = {key: row[key] for key in keys if key in row} or None
        yield row["id"], Decision(keep=row["keep"], reason=row["reason"], value=row["value"], cut=cut, fields=fields)


def _counted(decision: Decision, counts: Counter[str]) -> Decision:
    counts["documents"] += 1
    if decision.keep:
        counts["kept"] += 1
        if decision.cut:
            counts["documents_cut"] += 1
            counts["characters_cut"] += sum(end - start for start, end in decision.cut)
        return decision
    if not decision.reason:
        raise ValueError(f"A document is rejected without a reason: {decision!r}. Set a reason, which counts it.")
    counts["rejected"] += 1
    counts[f"rejected_{decision.reason}"] += 1
    return decision


def _row(id: str, decision: Decision) -> dict[str, Any]:
    row: dict[str, Any] = {"id": id, "keep": decision.keep, "reason": decision.reason, "value": decision.value}
    if decision.cut:
        row["cut"] = [list(span) for span in decision.cut]
    return {**row, **decision.fields} if decision.fields else row


def _is_decision(row: Mapping[str, Any]) -> bool:
    plain = isinstance(row.get("id"), str) and isinstance(row.get("keep"), bool) and isinstance(row.get("reason"), str)
    return plain and "value" in row and _is_number(row["value"]) and _are_spans(row.get("cut") or ())


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _are_spans(cut: Any) -> bool:
    """Whether these are spans [start, end); an empty one cuts nothing."""
    if not isinstance(cut, list | tuple) or not all(isinstance(span, list | tuple) and len(span) == 2 for span in cut):
        return False
    whole = all(isinstance(bound, int) and not isinstance(bound, bool) for span in cut for bound in span)
    return whole and all(0 <= start <= end for start, end in cut)
