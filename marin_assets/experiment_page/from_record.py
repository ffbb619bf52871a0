"""The steps of a page from a record of an experiment, with the states of their outputs.

In:  the path of the record, and parts of names that select steps.
Out: the steps. A step is compared with the newest earlier output of its name; an output with the inputs that it read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from marin_assets.experiment_page.earlier_partitions import VersionOfNow, why_of_partitions, why_since
from marin_assets.experiment_page.page_steps import PageStep, PageSteps, everything
from marin_assets.experiment_page.past_contents import past_contents
from marin_assets.experiment_page.record_file import NoSuchRecordError, RecordedStep, RecordFile, read_record_file
from marin_assets.plan.prepare import EXACT_UP_TO
from marin_assets.plan.reasons.causes import Why
from marin_assets.plan.record_facts.facts import manifest_digest
from marin_assets.step.origin import Origin
from marin_resources.drift.drift import Drift, find_drift
from marin_resources.storage.completion.markers import Mark
from marin_resources.storage.index.complete import CompleteOutputs
from marin_resources.storage.index.look import look_at_partitions, look_in_bulk
from marin_resources.storage.output.store import Store
from marin_resources.types.output import Observed, Output
from marin_resources.types.record import Record

OUTSIDE = "its path is outside of what is shown"

Outputs = Mapping[str | None, Observed]
"""Key of a partition -> its output; None -> that of a step without partitions."""


def steps_of_record(
    path: str,
    selections: Sequence[str] = (),
    prefix: str | None = None,
    *,
    shows: Callable[[str], bool] = everything,
    writes: bool = True,
) -> PageSteps:
    """The page's steps for the record at a path. `shows`, `writes`: see `steps_of_file`. Raises NoSuchRecordError,
    ControlFileError and UnavailableError."""
    return steps_of_file(read_record_file(path, prefix), selections, shows=shows, writes=writes)


def steps_of_file(
    file: RecordFile,
    selections: Sequence[str] = (),
    *,
    shows: Callable[[str], bool] = everything,
    writes: bool = True,
) -> PageSteps:
    """The page's steps for a record. `shows`: whether a path may be read; `writes`: whether markers and packs, which
    make the next page faster, may be written. Raises NoSuchRecordError and UnavailableError."""
    store, steps = Store(file.prefix), _selected(file, selections)
    complete = CompleteOutputs(store.prefix, writes=writes)
    outputs = observe_steps(store, complete, steps, shows)
    earlier = {step.name: mark for step in steps if (mark := _earlier(step.output, complete)) is not None}
    records = complete.records(earlier.values())
    why = {
        step.name: why_since(step.version, mark, records.get(mark))
        for step in steps
        if (mark := earlier.get(step.name)) is not None
    }
    why |= why_of_partitions(
        store,
        [
            VersionOfNow(name=step.name, hash=step.output.version, fields=step.version)
            for step in steps
            if step.is_partitioned
        ],
    )
    past = past_contents(store, {step.output: outputs[step.name][None] for step in steps if None in outputs[step.name]})
    digests = _digests(outputs)
    page_steps = [
        _step(step, store, outputs[step.name], why.get(step.name), past.get(step.output), digests) for step in steps
    ]
    return PageSteps(
        title=file.title,
        prefix=store.prefix,
        commit=file.commit,
        users=file.users,
        steps=_inputs_first(page_steps, file.path),
        shows=shows,
    )


def observe_steps(
    store: Store,
    complete: CompleteOutputs,
    steps: Sequence[RecordedStep],
    shows: Callable[[str], bool],
) -> dict[str, Outputs]:
    """Name of a step -> its outputs as they are now. Of many outputs the complete ones are known by their markers."""
    readable = [step for step in steps if step.is_plain and shows(store.locate(step.output))]
    whole = [step.output for step in readable if not step.is_partitioned]
    keys = {step.output: store.partitions(step.output) for step in readable if step.is_partitioned}
    parts = [output.at(key) for output, several in keys.items() for key in several]
    looked: dict[Output, Observed] = {}
    if len(whole) + len(parts) > EXACT_UP_TO:
        looked = {**look_in_bulk(store, whole, complete), **look_at_partitions(store, keys, complete)}
    looked |= store.look(output for output in (*whole, *parts) if output not in looked)
    outside = {step.name for step in steps} - {step.name for step in readable}
    return {
        step.name: {None: Observed(path=store.locate(step.output), damage=OUTSIDE)}
        if step.name in outside
        else {key: looked[step.output.at(key)] for key in keys[step.output]}
        if step.is_partitioned
        else {None: looked[step.output]}
        for step in steps
    }


def _digests(outputs: Mapping[str, Outputs]) -> dict[str, str | None]:
    """The label of an input -> today's digest of its manifest."""
    return {
        name if key is None else f"{name}[{key}]": manifest_digest(observed)
        for name, of_step in outputs.items()
        for key, observed in of_step.items()
    }


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


def _selected(file: RecordFile, selections: Sequence[str]) -> list[RecordedStep]:
    """The steps whose names contain one of the selections; all without one."""
    for text in selections:
        if not any(text in step.name for step in file.steps):
            raise NoSuchRecordError(
                f"No step of {file.path!r} has {text!r} in its name. Of a record, pass parts of the names of its steps."
            )
    return [step for step in file.steps if not selections or any(text in step.name for text in selections)]


def _earlier(output: Output, complete: CompleteOutputs) -> Mark | None:
    """The newest complete output of another version, before this one if this one is complete."""
    marks = complete.by_name.get(output.name, ()) if output.version else ()
    own = next((mark for mark in marks if mark.is_of(output)), None)
    others = (mark for mark in marks if not mark.is_of(output))
    return next((mark for mark in others if own is None or mark.finished_s <= own.finished_s), None)


def _step(
    step: RecordedStep,
    store: Store,
    outputs: Outputs,
    why: Why | None,
    past: Record | None,
    digests: Mapping[str, str | None],
) -> PageStep:
    recorded = [observed.record for observed in outputs.values()]
    origins = {
        name: Origin(name=origin.name, licence=origin.licence, bytes=origin.bytes, homepage=origin.homepage)
        for record in recorded[:1]
        for name, origin in record.origins.items()
        if origin.name
    }
    return PageStep(
        name=step.name,
        version=step.output.version,
        parents=step.parents,
        function=step.function,
        description=next((str(record.description) for record in recorded if record.description), ""),
        outputs=outputs,
        is_partitioned=None not in outputs,
        origins=origins,
        why=why,
        path=store.locate(step.output),
        drift={key: changed for key, observed in outputs.items() if (changed := _drift(observed, digests))},
        past=past,
    )


def _drift(observed: Observed, digests: Mapping[str, str | None]) -> tuple[Drift, ...]:
    """The inputs that were computed again since. The code of the step is not in a record of an experiment."""
    return find_drift(observed.record, Record(), digests) if observed.done else ()
