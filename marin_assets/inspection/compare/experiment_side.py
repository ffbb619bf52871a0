"""Sides of a comparison from experiments: those of the code, and records below `<prefix>/experiments/`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from marin_assets.inspection.compare.side import Side, SideStep, side_of
from marin_assets.step.graph import Node, build_graph
from marin_assets.step.step import Step
from marin_resources.storage.control import control
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_resources.types.versioned_json import ControlFileError, Required, VersionedJson
from marin_resources.wire.reference import reference_to

RECORD = re.compile(r".+-[0-9a-f]{6}(\.json)?")
"""The name of a record of an experiment, or a path to it."""


class ExperimentRecordError(ControlFileError):
    """A record of an experiment that cannot be read: one sentence with its path."""


FORMAT = VersionedJson(
    kind="record of an experiment",
    newest=1,
    error=ExperimentRecordError,
    default=0,  # Marin's have none
    shape={
        "created_date": str,
        "git_commit": str,
        "steps": Required(
            [{"name": Required(str), "output_path": Required(str), "fn_name": str, "version": dict}],
        ),
    },
)


def side_of_experiment(name: str, steps: Iterable[Step], store: Store) -> Side:
    """An experiment of the code location, with all inputs of its steps."""
    return side_of(f"the experiment {name!r}", _of_nodes(build_graph(steps), store))


def side_of_record(text: str, prefix: str) -> Side | None:
    """The record of an experiment, by its path, or its name with the hash; None if none exists.

    Raises ControlFileError and UnavailableError.
    """
    if RECORD.fullmatch(text) is None:
        return None
    file = text if text.endswith(".json") else f"{text}.json"
    paths = [file] if "/" in file else [join(prefix, "experiments", file)]
    if not file.startswith("/") and "://" not in file and "/" in file:
        paths.append(join(prefix, file))
    for path in paths:
        content = control.read(path)
        if content is not None:
            return _of_record(FORMAT.parse(content.data, path), path)
    return None


def _of_record(fields: dict[str, Any], path: str) -> Side:
    steps = [
        SideStep(
            name=step["name"],
            version=step.get("version"),
            path=step["output_path"],
            function=step.get("fn_name") or "",
        )
        for step in fields["steps"]
    ]
    commit = f", commit {fields['git_commit'][:12]}" if fields.get("git_commit") else ""
    return side_of(f"the record {path!r} of {fields.get('created_date', 'an unknown day')[:10]}{commit}", steps)


def _of_nodes(nodes: Iterable[Node], store: Store) -> list[SideStep]:
    return [
        SideStep(
            name=node.name,
            version=node.version.as_dict(),
            path=store.locate(node.output),
            function=reference_to(node.step.fn),
        )
        for node in nodes
    ]
