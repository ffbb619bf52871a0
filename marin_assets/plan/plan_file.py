"""A saved plan: its JSON, its options, and the facts with which each step would run. Given back, it is compared with
the plan of that moment."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from marin_assets.plan.plan import Action, Kind, Planned
from marin_assets.plan.render.json_fields import FORMAT_VERSION, output_as_json
from marin_assets.plan.run_facts import SHAPE as INTENDED
from marin_assets.plan.run_facts import differences_of, intended_as_json
from marin_assets.step.graph import Graph
from marin_assets.step.values import ConfigError
from marin_resources.drift.drift import Kind as DriftKind
from marin_resources.storage.files import read_bytes, write_json
from marin_resources.storage.output.store import Store
from marin_resources.types.versioned_json import ANY, ControlFileError, Required, VersionedJson

SHOWN_CHANGES = 5
OUTPUT = {
    "step": Required(str),
    "partition": str,
    "identity": Required(str),
    "action": Required(str),
    "reason": Required(str),
    "finished_at": str,
    "path": str,
    "drift": [{"kind": Required(str), "what": Required(str), "was": object, "now": object}],
}
SHAPE = {"prefix": Required(str), "request": Required({ANY: object}), "outputs": Required([OUTPUT]), **INTENDED}

HAPPENED = {
    (Action.REUSE, Kind.COMPLETE): "was computed again",
    (Action.REUSE, Kind.UNVERIFIED): "was computed again",
    (Action.REUSE, Kind.ADOPTED): "was adopted since",
    (Action.RUN, Kind.FAILED): "was tried again, and failed",
}
"""Action and kind of an output whose record has another time than when the plan was saved -> the event since."""


class SavedPlanError(ControlFileError):
    """A saved plan that cannot be used: one sentence."""


FORMAT = VersionedJson(
    kind="plan",
    newest=FORMAT_VERSION,
    error=SavedPlanError,
    shape=SHAPE,
    if_damaged="Save one with `marin plan … --save FILE`.",
)


def save_plan(
    path: str,
    plan: Mapping[str, Any],
    request: Mapping[str, Any],
    planned: Sequence[Planned],
    graph: Graph,
    store: Store,
) -> None:
    """Write the JSON of a plan (`plan_as_json`), the options that it is a plan of, and the facts that its steps run
    with."""
    write_json(path, {**plan, "request": dict(request), **intended_as_json(planned, graph, store)})


def read_plan(path: str) -> dict[str, Any]:
    """Return a saved plan. Raises ConfigError for a file that does not exist, and SavedPlanError."""
    try:
        return FORMAT.parse(read_bytes(path), path)
    except (FileNotFoundError, IsADirectoryError):
        raise ConfigError(f"There is no plan {path!r}. Save one with `marin plan … --save FILE`.") from None


def require_unchanged(
    saved: Mapping[str, Any], planned: Sequence[Planned], graph: Graph, store: Store, path: str
) -> None:
    """Raise ConfigError with the differences, unless the plan is the saved one."""
    changes = [*_changes(saved, planned, store.prefix), *_changes_of_runs(saved, planned, graph, store)]
    if changes:
        more = f" And {len(changes) - SHOWN_CHANGES} more." if len(changes) > SHOWN_CHANGES else ""
        raise ConfigError(
            f"The plan {path!r} does not hold any more: {' '.join(changes[:SHOWN_CHANGES])}{more} Plan again."
        )


def _changes(saved: Mapping[str, Any], planned: Sequence[Planned], prefix: str) -> Iterator[str]:
    if saved["prefix"] != prefix:
        yield f"It is of the prefix {saved['prefix']!r}, and this is {prefix!r}."
    before = {_key(output): output for output in saved["outputs"]}
    # as they are after a round trip through JSON
    after = {_key(output): output for output in map(json.loads, map(json.dumps, map(output_as_json, planned)))}
    for key in [*after, *(key for key in before if key not in after)]:
        was, now = before.get(key), after.get(key)
        if was is None or now is None:
            yield f"{_label(key)} is {'new in' if was is None else 'gone from'} the steps."
        elif was["identity"] != now["identity"]:
            yield f"The recipe of {_label(key)} is another one."
        elif was["action"] != now["action"]:
            yield f"{_label(key)} was {_of(was)}, and is {_of(now)}."
        elif was.get("path", now["path"]) != now["path"]:
            yield f"The path of {_label(key)} was {was['path']!r}, and is {now['path']!r}."
        elif was.get("finished_at") != now["finished_at"] and (happened := HAPPENED.get((now["action"], now["kind"]))):
            yield f"{_label(key)} {happened}, at {now['finished_at']}."
        elif was["reason"] != now["reason"]:
            yield f"{_label(key)} was {_of(was)} for another reason: {was['reason']}; now: {now['reason']}."
        elif _drift(was) != _drift(now):
            yield f"{_label(key)} drifts otherwise than it did."


def _changes_of_runs(saved: Mapping[str, Any], planned: Sequence[Planned], graph: Graph, store: Store) -> Iterator[str]:
    """The differences in the facts with which outputs would be computed that are still to be computed. A difference
    that several partitions of a step have is named once."""
    if "runs" not in saved and any(item.action is Action.RUN for item in planned):
        yield "It does not have the configs and the code of what is to run, as an earlier version has saved it."
    identities = {_key(output): output["identity"] for output in saved["outputs"]}
    same = [item for item in planned if identities.get((item.node.name, item.node.key)) == item.node.output.identity]
    yielded = set()
    for node, sentence in differences_of(saved, same, graph, store):
        about = None if node is None else node.name
        if (about, sentence) not in yielded:
            yielded.add((about, sentence))
            yield sentence if node is None else f"{_label((node.name, node.key))}: {sentence}"


def _drift(output: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The drift without the plumbing, which is shown and never counts."""
    return [drift for drift in output.get("drift") or () if drift["kind"] != DriftKind.PLUMBING]


def _key(output: Mapping[str, Any]) -> tuple[str, str | None]:
    return output["step"], output.get("partition")


def _label(key: tuple[str, str | None]) -> str:
    return repr(key[0] if key[1] is None else f"{key[0]}[{key[1]}]")


def _of(output: Mapping[str, Any]) -> str:
    return "blocked" if output["action"] == "blocked" else f"to {output['action']}"
