"""The steps of a page from a record of an experiment, `<prefix>/experiments/<name>-<hash>.json`: ours, or Marin's.

In:  the path of the record, and parts of names that select steps.
Out: the steps, with the states of their outputs where they are now: below the prefix that the record is in, else below
     the one that it names. A step is compared with the newest earlier output of its name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from marin_assets.experiment_page.page_steps import PageStep, PageSteps
from marin_assets.inspection.compare.experiment_side import FORMAT
from marin_assets.plan.reasons.causes import Cause, Why
from marin_assets.plan.reasons.differences import differences
from marin_assets.plan.reasons.read_inputs import name_of, path_of
from marin_assets.step.origin import Origin
from marin_resources.storage.completion.markers import Mark
from marin_resources.storage.control import control
from marin_resources.storage.index.complete import CompleteOutputs
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import absolute, is_local
from marin_resources.types.errors import InvalidInputError
from marin_resources.types.output import Observed, Output, identity_of
from marin_resources.types.record import Record

FOLDER = "experiments"


class NoSuchRecordError(InvalidInputError):
    """A record of an experiment that does not exist, or whose steps cannot be selected."""


def steps_of_record(path: str, selections: Sequence[str] = (), prefix: str | None = None) -> PageSteps:
    """The page's steps for a record. Raises NoSuchRecordError, ControlFileError and UnavailableError."""
    content = control.read(path)
    if content is None:
        raise NoSuchRecordError(
            f"No record of an experiment exists at {path!r}. Expected a file of <prefix>/experiments/."
        )
    fields = FORMAT.parse(content.data, path)
    recorded = str(fields.get("prefix") or "").rstrip("/")
    store = Store(prefix or _prefix_of(path) or recorded or ".")
    steps = _selected(fields["steps"], selections, path)
    outputs = {step["name"]: _output(step, recorded) for step in steps}
    looked = store.look(outputs.values())
    complete = CompleteOutputs(store.prefix)
    earlier = {name: mark for name, output in outputs.items() if (mark := _earlier(output, complete)) is not None}
    records = complete.records(earlier.values())
    name_at = {step["output_path"].rstrip("/"): step["name"] for step in fields["steps"]}
    page_steps = [
        _step(step, output, looked[output], name_at, earlier.get(output.name), records)
        for step, output in zip(steps, outputs.values(), strict=True)
    ]
    return PageSteps(
        title=os.path.basename(path).removesuffix(".json"),
        prefix=store.prefix,
        commit=str(fields.get("git_commit") or ""),
        users=tuple(str(fields[name]) for name in ("user", "worker_id") if fields.get(name)),
        steps=_inputs_first(page_steps, path),
    )


def _inputs_first(steps: Sequence[PageStep], path: str) -> list[PageStep]:
    """The steps, inputs before readers. Raises NoSuchRecordError for steps that read one another in a circle."""
    by_name = {step.name: step for step in steps}
    sorter = TopologicalSorter({step.name: [name for name in step.parents if name in by_name] for step in steps})
    try:
        return [by_name[name] for name in sorter.static_order()]
    except CycleError as error:
        circle = " reads ".join(map(repr, reversed(error.args[1])))
        raise NoSuchRecordError(
            f"The record {path!r} cannot be shown: {circle}. Expected steps without a circle."
        ) from None


def _prefix_of(path: str) -> str:
    """The prefix whose folder of records holds the file; "" if it is elsewhere."""
    folder = os.path.dirname(absolute(path) if is_local(path) else path)
    return os.path.dirname(folder) if os.path.basename(folder) == FOLDER else ""


def _selected(steps: Sequence[Mapping[str, Any]], selections: Sequence[str], path: str) -> list[Mapping[str, Any]]:
    """The steps, each name once, whose names contain one of the selections; all without one."""
    every = list({step["name"]: step for step in steps}.values())
    for text in selections:
        if not any(text in step["name"] for step in every):
            raise NoSuchRecordError(
                f"No step of {path!r} has {text!r} in its name. Of a record, pass parts of the names of its steps."
            )
    return [step for step in every if not selections or any(text in step["name"] for text in selections)]


def _output(step: Mapping[str, Any], recorded: str) -> Output:
    """The output at the recorded path, relative to the prefix if it is below the recorded one."""
    place, version = step["output_path"].rstrip("/"), step.get("version")
    inside = recorded and place.startswith(f"{recorded}/")
    return Output(
        name=step["name"],
        version=path_of(version)[-6:] if version else "",
        identity=identity_of(version) if version else "",
        override=place.removeprefix(f"{recorded}/") if inside else place,
    )


def _earlier(output: Output, complete: CompleteOutputs) -> Mark | None:
    """The newest complete output of another version, before this one if this one is complete."""
    marks = complete.by_name.get(output.name, ()) if output.version else ()
    own = next((mark for mark in marks if mark.is_of(output)), None)
    others = (mark for mark in marks if not mark.is_of(output))
    return next((mark for mark in others if own is None or mark.finished_s <= own.finished_s), None)


def _step(
    step: Mapping[str, Any],
    output: Output,
    observed: Observed,
    name_at: Mapping[str, str],
    earlier: Mark | None,
    records: Mapping[Mark, Record],
) -> PageStep:
    version = step.get("version") or {}
    below = [*(version.get("dependencies") or ()), *(version.get("pseudo_dependencies") or ())]
    by_path = [name_at[path.rstrip("/")] for path in step.get("dependencies") or () if path.rstrip("/") in name_at]
    origins = {
        name: Origin(name=origin.name, licence=origin.licence, bytes=origin.bytes, homepage=origin.homepage)
        for name, origin in observed.record.origins.items()
    }
    return PageStep(
        name=step["name"],
        version=output.version,
        parents=tuple(dict.fromkeys([*map(name_of, below), *by_path])),
        function=step.get("fn_name") or "",
        description=str(observed.record.description or ""),
        outputs={None: observed},
        origins=origins,
        why=None if earlier is None else _why(version, earlier, records.get(earlier)),
    )


def _why(version: Mapping[str, Any], earlier: Mark, record: Record | None) -> Why:
    if record is None or not record.version:
        return Why(earlier=earlier, own=(), inputs=(), causes=())
    changed = differences(record.version, version, was_config=record.config)
    causes = tuple(Cause(step=str(version.get("name", "")), change=change) for change in changed.fields)
    inputs = tuple(change.name for change in changed.inputs)
    return Why(earlier=earlier, own=changed.fields, inputs=inputs, causes=causes)
