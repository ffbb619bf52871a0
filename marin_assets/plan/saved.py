"""A saved plan: its JSON, and what it is a plan of. Given back, it is compared with the plan of that moment."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from marin_assets.plan.plan import Planned
from marin_assets.plan.shown.as_json import FORMAT_VERSION, output_as_json
from marin_assets.step.values import ConfigError
from marin_resources.storage.files import read_bytes, write_json
from marin_resources.versioned_json import ANY, ControlFileError, Required, VersionedJson

SHOWN_CHANGES = 5
OUTPUT = {
    "step": Required(str),
    "partition": str,
    "identity": Required(str),
    "action": Required(str),
    "reason": Required(str),
    "finished_at": str,
}
SHAPE = {"prefix": Required(str), "request": Required({ANY: object}), "outputs": Required([OUTPUT])}


class SavedPlanError(ControlFileError):
    """A saved plan that cannot be used: one sentence."""


FORMAT = VersionedJson(
    kind="plan",
    newest=FORMAT_VERSION,
    error=SavedPlanError,
    shape=SHAPE,
    if_damaged="Save one with `marin plan … --save FILE`.",
)


def save_plan(path: str, plan: Mapping[str, Any], request: Mapping[str, Any]) -> None:
    """Write the JSON of a plan (`shown.as_json`), and the options that it is a plan of."""
    write_json(path, {**plan, "request": dict(request)})


def read_plan(path: str) -> dict[str, Any]:
    """Return a saved plan. Raises ConfigError for a file that does not exist, and SavedPlanError."""
    try:
        return FORMAT.parse(read_bytes(path), path)
    except (FileNotFoundError, IsADirectoryError):
        raise ConfigError(f"There is no plan {path!r}. Save one with `marin plan … --save FILE`.") from None


def require_unchanged(saved: Mapping[str, Any], planned: Sequence[Planned], prefix: str, path: str) -> None:
    """Raise ConfigError that says what is different now, unless the plan is the saved one."""
    changes = list(_changes(saved, planned, prefix))
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
        elif was.get("finished_at") != now.get("finished_at"):
            yield f"{_label(key)} was computed again, at {now.get('finished_at')}."
        elif was["reason"] != now["reason"]:
            yield f"{_label(key)} was {_of(was)} for another reason: {was['reason']}; now: {now['reason']}."


def _key(output: Mapping[str, Any]) -> tuple[str, str | None]:
    return output["step"], output.get("partition")


def _label(key: tuple[str, str | None]) -> str:
    return repr(key[0] if key[1] is None else f"{key[0]}[{key[1]}]")


def _of(output: Mapping[str, Any]) -> str:
    return "blocked" if output["action"] == "blocked" else f"to {output['action']}"
