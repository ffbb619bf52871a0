"""A step: a name, a function, and the config that the function takes. Creating a step runs nothing."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from marin_assets.step.config_check import require_config_fits, require_function, require_types
from marin_assets.step.error_line import line_here
from marin_assets.step.expectation import Expectation
from marin_assets.step.field_checks import require_fields, require_name, tags_of
from marin_assets.step.marins_sentences import takes_marins_arguments
from marin_assets.step.origin import Origin
from marin_assets.step.partitions.sets import Partitions
from marin_assets.step.step_group import current_group
from marin_assets.step.values import (
    ConfigError,
    InputName,
    MirroredValue,
    PartitionName,
    Placeholder,
    StepMarker,
    VersionedValue,
    field_names,
)
from marin_resources.hardware.resources import Resources, cpu

_URL = re.compile(r"\s*(?:\w+::)*[A-Za-z][A-Za-z0-9+.-]*://[^/\s@:]*:(?P<password>[^/\s@]+)@")
"""A URL with user and password, also behind the protocols that fsspec chains. A token as the user is not found."""


@takes_marins_arguments
@dataclass(frozen=True, eq=False, kw_only=True)
class Step(StepMarker):
    """One node of the DAG: `fn(config)` writes an output at `<prefix>/<name>-<version>`.

    Two steps with the same name, versioned config fields and inputs are the same step. Every other field may change
    without a new computation.
    """

    name: str
    """The name of its output, for example "tokenized/fineweb". Segments of letters, digits and `-_.=,+@:`."""
    fn: Callable[[Any], Any]
    """A plain importable function. Its result (numbers, names, plots) goes into the record."""
    config: Any
    """A frozen dataclass. Only `versioned()` fields and inputs enter the version. Its method
    `check_step(name, resources)`, if it has one, is called when the step is created: it raises an error for a value
    that the function would refuse."""
    partitions: Partitions | None = None
    """The keys of which each has an output of its own, such as static("en", "de"). None: the step has one output."""
    max_partitions_per_run: int | None = None
    """Limit on the partitions that one run of a backfill computes. None: all of them; a run costs some seconds."""
    description: str | None = None
    """Shown to people; None: the function's docstring."""
    resources: Resources = field(default_factory=cpu)
    extras: Sequence[str] = ()
    """Extras of pyproject.toml that the function needs, for example ("train",)."""
    env: Sequence[str] = ()
    """Names of environment variables that the function may see on the worker. Values are never stored."""
    expected_flops: float | None = None
    """Floating-point operations of the function, where they can be counted before. By them the plan estimates the time
    on devices of a step that was never computed."""
    packages: Sequence[str] = ()
    """Requirements that the function needs beyond the extras, for example ("lxml>=5",)."""
    timeout_s: float | None = None
    """Time limit of the function in seconds; None: no limit."""
    progress_timeout_s: float | None = None
    """Time limit between two reports of progress (`marin_resources.step_api.progress`), also from the function's call
    to the first, in seconds; None: no limit. It must cover a compilation, an evaluation and a checkpoint."""
    key: Sequence[str] | None = None
    """Asset key in Dagster. None: derived from the name, "tokenized/fineweb" is the asset fineweb/tokenized."""
    group: str | None = field(default_factory=current_group)
    """Part of the subject, such as "filters": Dagster's lineage shows its steps as one box, the group fineweb/filters.
    By default that of the block `with step_group("filters"):` around it. None: the group of the subject, fineweb."""
    own_job: bool | None = None
    """On a cluster: whether the step is a job of its own, or shares one with other small steps of its run. None: it
    shares one if it requests at most 1 CPU and no memory, has no `packages` and no extras that load JAX or torch, and
    took less than ten minutes the last time."""
    resumable: bool = False
    """Whether an attempt resumes from the files of a crashed one; if not, it starts with an empty folder."""
    override_output_path: str | None = None
    """A path in place of the hashed one. It changes no version, neither this step's nor a reader's."""
    expectations: Sequence[Expectation] = ()
    """Bounds on the result; each is an asset check."""
    owners: Sequence[str] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    """Tags of the asset, to filter by: {"team": "data"}, or a list, in which "team=data" is the same and "nano" has no
    value."""
    kinds: Sequence[str] = ()
    origin: Origin | None = None
    """The data set that it downloads, with licence and size. Plans and pages of all that is computed from it show
    it."""

    def __post_init__(self) -> None:
        require_name(self.name)
        require_function(self.fn, self.name)
        if not dataclasses.is_dataclass(self.config) or isinstance(self.config, type):
            raise ConfigError(
                f"Step {self.name!r} has config={self.config!r}, expected an instance of a dataclass. "
                "Declare the config's fields in a @dataclass(frozen=True, kw_only=True)."
            )
        require_config_fits(self.fn, self.config, self.name)
        require_fields(self)
        object.__setattr__(self, "tags", tags_of(self.tags, self.name))
        _refuse_passwords(self.config, tuple(self.packages), self.name)
        check = getattr(self.config, "check_step", None)
        if callable(check):
            check(self.name, self.resources)
        require_types(self.config, self.name)
        object.__setattr__(self, "_line", line_here())

    @property
    def line(self) -> str:
        """ "file:line" of the person's call that created the step, for errors about it."""
        return self._line  # type: ignore[attr-defined,no-any-return]

    def __truediv__(self, name: str) -> InputName:
        return self.cd(name)

    def cd(self, name: str) -> InputName:
        """A path below this step's output."""
        return InputName(self, name)

    def as_input_name(self) -> InputName:
        return InputName(self, None)

    def nonblocking(self) -> InputName:
        """Read what this step has written so far, without waiting for it."""
        return InputName(self, None, block_on_step=False)

    def with_output_path(self, path: str) -> Step:
        """Return a copy of this step with its output at `path`, absolute or relative to the prefix."""
        return dataclasses.replace(self, override_output_path=path)

    def __repr__(self) -> str:
        return f"Step({self.name!r})"


def _refuse_passwords(config: Any, packages: tuple[str, ...], step: str) -> None:
    """Raise ConfigError for a URL with a password in a step's config, or in a requirement such as "a @ https://…"."""
    requirements = ((f"packages[{i}]", requirement.partition("@")[2]) for i, requirement in enumerate(packages))
    for place, text in (*_texts(config, "config"), *requirements):
        if match := _URL.match(text):
            shown = text.replace(match["password"], "***")
            raise ConfigError(
                f"Step {step!r} has a password in {place}, {shown!r}, which would be stored beside its output and be "
                "shown in Dagster. Remove it: https finds user and password of a host in ~/.netrc of the machine that "
                "runs the step, and a function finds a secret in a variable that the step names in env."
            )


def _texts(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """The texts of a value with their places. Takes no recursion, as the value may be nested too deeply."""
    remaining = [(place, value)]
    while remaining:
        place, value = remaining.pop()
        if value is None or type(value) in (int, float, bool):  # most values
            continue
        if isinstance(value, str | PurePath):
            yield place, str(value)
        elif isinstance(value, PartitionName):
            yield place, value.form
        elif isinstance(value, VersionedValue | MirroredValue):
            remaining.append((place, value.value))
        elif isinstance(value, Placeholder | StepMarker):
            continue
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            remaining += [(f"{place}.{name}", getattr(value, name)) for name in field_names(type(value))]
        elif isinstance(value, Mapping):
            remaining += [(f"{place}[{key!r}]", item) for key, item in value.items()]
        elif isinstance(value, list | tuple):
            remaining += [(f"{place}[{i}]", item) for i, item in enumerate(value)]
