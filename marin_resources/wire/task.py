"""A task: everything that a worker needs to compute one output, as plain JSON. No pickle crosses to a worker."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from marin_resources.hardware.resources import Resources
from marin_resources.types.output import Output, below
from marin_resources.types.places import absolute, is_within, relative_to, split_scheme
from marin_resources.types.versioned_json import VersionedJson
from marin_resources.wire.config_json import decode, encode, plain, texts_in

FORMAT_VERSION = 1
FORMAT = VersionedJson(kind="task for", newest=FORMAT_VERSION, error=ValueError)
ENCODED = frozenset({"output", "resources", "extras", "env", "packages", "copies", "inputs"})
"""Fields that are encoded by `config_json`. `config` is encoded already, `facts` are plain."""


@dataclass(frozen=True, kw_only=True)
class Task:
    output: Output
    prefix: str
    path: str
    inputs: tuple[str, ...] = ()
    """The paths of its inputs, which must be complete when its function is called."""
    data_prefix: str | None = None
    """Prefix of the region that computes it, if that is another one than `prefix`: its data go below it."""
    copies: tuple[str, ...] = ()
    """`mirror://` paths of inputs in other regions, which are copied there before the function is called."""
    records: Mapping[str, str] = field(default_factory=dict)
    """Path of an adopted input in the config -> the path of its record."""
    cluster: str = ""
    """Name of the cluster of a fleet that it goes to."""
    fn: str
    """Import path of the function, "module:name"."""
    finish: str = ""
    """Import path of a function that gets the path of the output's data when `fn` has returned; empty: none."""
    config: Any
    """The resolved config as `config_json.encode` gives it."""
    resources: Resources = field(default_factory=Resources)
    extras: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    """Names of environment variables; never their values."""
    packages: tuple[str, ...] = ()
    """Requirements beyond the extras, such as "lxml>=5"."""
    timeout_s: float | None = None
    """Time limit of the function. None: no limit."""
    progress_timeout_s: float | None = None
    """Time limit between two steps that the function reports. None: no limit."""
    own_job: bool | None = None
    """Whether the task is a job of its own on a cluster; None leaves that to the back end."""
    attempt: int = 1
    resumable: bool = False
    mirror_budget_bytes: int | None = None
    """Bytes that the step may read from other regions; None: the deployment's default."""
    stale_lease: str | None = None
    """Generation of a stale lease, which the worker may take over."""
    run_id: str | None = None
    submitted_at: str | None = None
    """ISO 8601, UTC, by the submitter's clock."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Facts for the record that are known before the work: name, config, version, dependencies, code, …"""

    @property
    def id(self) -> str:
        """Equal for the same work, so that a task that is submitted twice runs once."""
        return f"{self.output.relative()}#{self.attempt}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        encoded = {name: encode(value) if name in ENCODED else value for name, value in fields.items()}
        return {"format_version": FORMAT_VERSION, **encoded}

    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> Task:
        """Return the task. Raises ValueError for a newer format version."""
        FORMAT.check(fields, str(fields.get("path")))
        arguments = {name: value for name, value in fields.items() if name != "format_version"}
        return Task(**{name: decode(value) if name in ENCODED else value for name, value in arguments.items()})


def paths_read(task: Task) -> tuple[str, ...]:
    """The paths of the task's inputs, and those in its config below its prefix or of the mirror; sorted."""
    own = [task.path, *([below(task.data_prefix, task.output.relative())] if task.data_prefix else [])]
    prefixes = [prefix for prefix in (task.prefix, task.data_prefix) if prefix]
    named = {path for text in texts_in(plain(task.config)) if (path := _path_below(text, prefixes)) is not None}
    return tuple(
        sorted({*task.inputs, *(path for path in named if not any(is_within(path, folder) for folder in own))})
    )


def _path_below(text: str, prefixes: Sequence[str]) -> str | None:
    """The path that the text is, from the folder in which the task works, if it is below a prefix or of the mirror."""
    if "/" not in text or "\n" in text or "\0" in text:
        return None
    path = text if "://" in text or text.startswith("/") else absolute(text)
    is_read = split_scheme(path)[0] == "mirror" or relative_to(path, prefixes) is not None
    return path if is_read else None
