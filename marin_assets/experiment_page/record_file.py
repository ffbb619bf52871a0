"""The record of an experiment, `<prefix>/experiments/<name>-<hash>.json`: ours, or Marin's.

In:  the path of the record.
Out: its steps with their outputs, where they are now: below the prefix that the record is in, else below the one that
     it names. Every value is a text of a stranger: a name that is no path below a prefix leads to no output.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.inspection.compare.experiment_side import FORMAT
from marin_assets.plan.reasons.read_inputs import name_of, path_of
from marin_resources.storage.control import control
from marin_resources.storage.paths import absolute, is_local
from marin_resources.types.errors import InvalidInputError
from marin_resources.types.output import Output, identity_of

FOLDER = "experiments"
"""Folder of the records below a prefix."""


class NoSuchRecordError(InvalidInputError):
    """A record of an experiment that does not exist, or whose steps cannot be selected."""


@dataclass(frozen=True, kw_only=True)
class RecordedStep:
    """A step of a record."""

    name: str
    output: Output
    function: str
    version: Mapping[str, Any]
    parents: tuple[str, ...]
    """Names of the steps that it reads."""

    @property
    def is_partitioned(self) -> bool:
        return "partitions" in self.version

    @property
    def is_plain(self) -> bool:
        """Whether name and path are those of an output: neither has ".." or the like."""
        names = [*self.name.split("/"), *self.output.relative().split("/")]
        return not {".", ".."}.intersection(names) and not self.name.startswith("/") and "\0" not in self.name


@dataclass(frozen=True, kw_only=True)
class RecordFile:
    """A record of an experiment."""

    path: str
    prefix: str
    """The prefix that its outputs are below."""
    steps: tuple[RecordedStep, ...]
    """Each name once."""
    created: str
    """ISO 8601; "" if it is not recorded."""
    commit: str
    users: tuple[str, ...]

    @property
    def title(self) -> str:
        return title_of(self.path)


def title_of(path: str) -> str:
    """The name and the hash of the experiment whose record is at this path."""
    return os.path.basename(path).removesuffix(".json")


def read_record_file(path: str, prefix: str | None = None) -> RecordFile:
    """Read a record. `prefix`: where its outputs are, if not below that of the record. Raises NoSuchRecordError,
    ControlFileError and UnavailableError."""
    content = control.read(path)
    if content is None:
        raise NoSuchRecordError(
            f"No record of an experiment exists at {path!r}. Expected a file of <prefix>/experiments/."
        )
    return parse_record_file(content.data, path, prefix)


def parse_record_file(data: bytes, path: str, prefix: str | None = None) -> RecordFile:
    """The record with these bytes. Raises ControlFileError."""
    fields = FORMAT.parse(data, path)
    recorded = str(fields.get("prefix") or "").rstrip("/")
    distinct = {step["name"]: step for step in fields["steps"]}
    name_at = {step["output_path"].rstrip("/"): step["name"] for step in fields["steps"]}
    try:
        steps = tuple(_step(step, recorded, name_at) for step in distinct.values())
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise FORMAT.invalid(path, error) from error
    return RecordFile(
        path=path,
        prefix=prefix or prefix_of(path) or recorded or ".",
        steps=steps,
        created=str(fields.get("created_date") or ""),
        commit=str(fields.get("git_commit") or ""),
        users=tuple(str(fields[name]) for name in ("user", "worker_id") if fields.get(name)),
    )


def prefix_of(path: str) -> str:
    """The prefix whose folder of records holds the file; "" if it is elsewhere."""
    folder = os.path.dirname(absolute(path) if is_local(path) else path)
    return os.path.dirname(folder) if os.path.basename(folder) == FOLDER else ""


def _step(step: Mapping[str, Any], recorded: str, name_at: Mapping[str, str]) -> RecordedStep:
    version = step.get("version") or {}
    if version and not isinstance(version.get("name"), str):
        raise ValueError(f"the version of the step {step['name']!r:.80} has no name")
    below = [name for row in ("dependencies", "pseudo_dependencies") for name in _names(version.get(row))]
    by_path = [name_at[path] for text in _texts(step.get("dependencies")) if (path := text.rstrip("/")) in name_at]
    return RecordedStep(
        name=step["name"],
        output=_output(step, version, recorded),
        function=str(step.get("fn_name") or ""),
        version=version,
        parents=tuple(dict.fromkeys([*below, *by_path])),
    )


def _texts(values: Any) -> Sequence[str]:
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []


def _names(dependencies: Any) -> list[str]:
    """The names of the inputs in a version."""
    rows = dependencies if isinstance(dependencies, list) else []
    return [
        name_of(row)
        for row in rows
        if isinstance(row, str) or (isinstance(row, Mapping) and isinstance(row.get("name"), str))
    ]


def _output(step: Mapping[str, Any], version: Mapping[str, Any], recorded: str) -> Output:
    """The output at the recorded path, relative to the prefix if it is below the recorded one."""
    place = step["output_path"].rstrip("/")
    inside = recorded and place.startswith(f"{recorded}/")
    return Output(
        name=step["name"],
        version=path_of(version)[-6:] if version else "",
        identity=identity_of(version) if version else "",
        override=place.removeprefix(f"{recorded}/") if inside else place,
    )
