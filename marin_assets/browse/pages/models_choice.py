"""Choose an evaluation to compare with: complete outputs below the prefix that have scores of the same tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marin_assets.browse.errors import NotComparableError
from marin_assets.browse.query import address
from marin_assets.browse.site import Asked, Shown
from marin_assets.browse.stored.answers.samples import MOST, SAMPLES, Samples, samples_at
from marin_assets.browse.stored.lineage import complete_outputs
from marin_assets.browse.stored.state import OutputState

SHOWN = 200
NAMED = 4
FUNCTIONS = (":evaluate_with_lm_eval", ":evaluate_with_inspect", ":evaluate_on_rewards")
"""Ends of the functions of the evaluations that have answers to questions."""


def models_choice(asked: Asked, texts: list[str]) -> Shown:
    """The evaluations that were chosen until now, and those that answered the tasks of the first of them."""
    if len(texts) >= MOST:
        raise NotComparableError(f"{len(texts)} evaluations are chosen, and {MOST} is the limit. Remove one.")
    chosen, name = [samples_at(asked.places, text) for text in texts], asked.query.text("name")
    prefix = chosen[0].place.prefix if chosen else asked.places.prefixes[0]
    tasks = _tasks(chosen[0].owner) if chosen else []
    taken = {of.place.text for of in chosen}
    evaluations = [
        (state, shared)
        for text, state in complete_outputs(asked.places, prefix).items()
        if text not in taken and _is_evaluation(state)
        if (shared := [task for task in _tasks(state) if not tasks or task in tasks]) or not tasks
    ]
    named = [(state, shared) for state, shared in evaluations if name in (state.record.name or state.place.text)]
    named.sort(key=lambda entry: (-len(entry[1]), entry[0].record.name or "", entry[0].place.text))
    facts: dict[str, Any] = {
        "chosen": [_chosen(of, texts) for of in chosen],
        "texts": texts,
        "name": name,
        "tasks": len(tasks),
        "entries": [_entry(state, shared, texts, tasks) for state, shared in named[:SHOWN]],
        "total": len(named),
        "samples": SAMPLES,
        "compare": address("models", model=texts) if len(texts) > 1 else "",
    }
    return Shown(template="models_choice", facts=facts)


def _chosen(of: Samples, texts: list[str]) -> dict[str, Any]:
    rest = [text for text in texts if text != of.place.text]
    return {
        "name": of.name,
        "text": of.place.text,
        "owner": of.owner,
        "without": address("models", model=rest, choose=1),
    }


def _entry(state: OutputState, shared: list[str], texts: list[str], tasks: list[str]) -> dict[str, Any]:
    more = f" and {len(shared) - NAMED} more" if len(shared) > NAMED else ""
    return {
        "name": state.record.name or state.place.text,
        "text": state.place.text,
        "tasks": ", ".join(task[:100] for task in shared[:NAMED]) + more,
        "share": f"{len(shared)} of {len(tasks)}" if tasks else f"{len(shared)}",
        "finished": str(state.record.finished_at or "")[:16].replace("T", " "),
        "link": address("models", model=[*texts, state.place.text]),
    }


def _is_evaluation(state: OutputState) -> bool:
    return (state.record.fn_name or "").endswith(FUNCTIONS)


def _tasks(state: OutputState | None) -> list[str]:
    """The tasks of the scores of an output; empty without a record of them."""
    scores = (state.record.result or {}).get("scores") if state is not None else None
    return [str(task) for task in scores] if isinstance(scores, Mapping) else []
