"""A training as a row of the table that a scaling law is fitted to.

In:  the record of a training: parameters, tokens_seen, flops, and its loss by name; the parts of its model.
Out: label, params, tokens, flops, loss, and all ways to count params.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marin_assets.stages.report.compare_runs import value_of
from marin_assets.stages.report.records import ReportError, StepRecord, read_records
from marin_resources.types.near_names import expected_one_of

COUNTS = ("with_head", "without_embeddings", "all")
"""Ways to count params. "with_head": the layers and the matrix of the output, in which a token is multiplied, so that
6ND is near the FLOPs. "without_embeddings": the layers alone. "all": both matrices of embeddings too."""


@dataclass(frozen=True, kw_only=True)
class ModelParts:
    """The parts of a model that do not depend on its vocabulary."""

    layers: int
    """Parameters of the layers and of the last norm."""
    active_layers: int
    """Those that a token meets: fewer in a mixture of experts."""
    embeddings: int
    """Matrices of the vocabulary: 1 if that of the input is that of the output, else 2."""

    def counts(self, total: int) -> dict[str, int]:
        """Params by each of COUNTS, of a model with this number."""
        head = (total - self.layers) // self.embeddings
        return {"with_head": self.active_layers + head, "without_embeddings": self.active_layers, "all": total}


def check_counting(params: str, models: Mapping[str, ModelParts], runs: Mapping[str, str]) -> None:
    """Raise ReportError for an unknown way to count, no runs, a run twice, or a run without the parts of its model."""
    if params not in COUNTS:
        raise ReportError(f"params is {params!r}, {expected_one_of(params, COUNTS)}")
    if not runs:
        raise ReportError("The table has no runs. Pass trainings by label.")
    labels: dict[str, str] = {}
    for label, path in runs.items():
        first = labels.setdefault(str(path), label)
        if first != label:
            raise ReportError(f"The runs {first!r} and {label!r} are one training, expected each once. Remove one.")
        if label not in models:
            raise ReportError(f"models lacks the run {label!r}, expected the parts of the model of each.")


def run_rows(runs: Mapping[str, str], models: Mapping[str, ModelParts], loss: str, params: str) -> list[dict[str, Any]]:
    """The rows, in the order of the runs. Raises ReportError for a training that is not finished, or has no such
    loss."""
    records = read_records(runs)
    return [_row(records[label], models[label], loss, params) for label in runs]


def _row(record: StepRecord, parts: ModelParts, loss: str, params: str) -> dict[str, Any]:
    total, tokens, flops = (_number(record, name) for name in ("parameters", "tokens_seen", "flops"))
    value = value_of(record, loss)
    if not math.isfinite(value):
        raise ReportError(
            f"The run {record.label!r} at {record.path!r} has no finite {loss!r}: it has diverged. Leave it out of the "
            "table, or train it with a lower learning rate."
        )
    counts = parts.counts(int(total))
    return {
        "label": record.label,
        "params": counts[params],
        "tokens": int(tokens),
        "flops": float(flops),
        "loss": value,
        "flops_6nd": 6.0 * counts[params] * tokens,
        "share_6nd": 6.0 * counts[params] * tokens / flops,
        **{f"params_{name}": counts[name] for name in COUNTS},
        "output": f"{record.name}-{record.version}".rstrip("-"),
    }


def _number(record: StepRecord, name: str) -> float:
    value = record.value(f"result.{name}")
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ReportError(
            f"The run {record.label!r} at {record.path!r} has {name} = {value!r} in its record, expected a number "
            "above 0. Pass trainings of train_lm that are finished."
        )
    return value
