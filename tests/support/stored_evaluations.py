"""Outputs of evaluations with answers, as `evaluate_with_lm_eval` leaves them: `samples.jsonl`, a record of scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stored_outputs_for_browsing import store_output

FUNCTION = "marin_assets.stages.evaluate.lm_eval:evaluate_with_lm_eval"


def choice_row(number: int, pick: int, *, task: str = "arc", target: int = 1, **fields: Any) -> dict[str, Any]:
    """The answer to a question with three choices, of which `pick` was given the most."""
    nats = [-5.0 - place for place in range(3)]
    nats[pick] = -1.0
    return {
        "task": task,
        "doc_id": number,
        "target": target,
        "context": f"Question: what is number {number} of {task}?\nAnswer:",
        "choices": [f"the first of {number}", f"the second of {number}", "neither"],
        "loglikelihoods": nats,
        "pick": pick,
        "acc": float(pick == target),
        **fields,
    }


def text_row(number: int, generated: str, *, task: str = "sums", **fields: Any) -> dict[str, Any]:
    """The generated answer to a sum."""
    target = str(number + number)
    row = {"task": task, "doc_id": number, "target": target, "context": f"Q: {number} + {number}?\nA:"}
    return {**row, "generated": generated, "exact_match": float(generated.strip() == target), **fields}


def answers(right: Sequence[int], task: str = "arc") -> list[dict[str, Any]]:
    """Answers to as many questions, of which each is right (1) or not (0)."""
    return [choice_row(number, 1 if is_right else 0, task=task) for number, is_right in enumerate(right)]


def store_evaluation(
    prefix: Path | str, name: str, rows: Iterable[Mapping[str, Any]], *, fn_name: str = FUNCTION, **fields: Any
) -> str:
    """Write the output; return its path below the prefix."""
    rows = list(rows)
    by_task: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_task.setdefault(str(row.get("task")), []).append(row)
    scores = {task: _scores(of) for task, of in by_task.items()}
    result = {"scores": scores}
    return store_output(str(prefix), name, {"samples.jsonl": rows}, fn_name=fn_name, result=result, **fields)


def _scores(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The mean and the standard error of each metric, as lm-eval computes them."""
    scores: dict[str, float] = {"instances": len(rows)}
    for metric in ("acc", "acc_norm", "exact_match", "bits_per_byte"):
        values = [float(row[metric]) for row in rows if metric in row]
        if values:
            mean = sum(values) / len(values)
            square = sum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1)
            scores |= {metric: mean, f"{metric}_stderr": (square / len(values)) ** 0.5}
    return scores
