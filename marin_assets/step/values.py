"""The values that a config may hold beside plain ones: versioned values, and placeholders for paths.

A config is written before the paths of its inputs and of its output are known. So a field holds a placeholder, which
`resolve` turns into a path and `version` into a part of the identity:

    versioned(50)              50; changing it changes the step's version
    output_path_of(step)       the path of the output of `step`
    this_output_path()         the path of this step's own output
    mirrored("raw/dclm")       a path that may be read from another region, up to a budget
    this_partition()           the key of the partition that is computed
    this_window()              the start and the end of that partition's window of time
    hardcoded("raw/old-1")     a path under the prefix that is no step's output

Each function has the type of the value that it stands for (`versioned(50)` is an `int` to a type checker), so a
config's fields keep their plain types. The semantics are Marin's (marin-community/marin).
"""

from __future__ import annotations

import dataclasses
import functools
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from marin_resources.types.errors import InvalidInputError
from marin_resources.wire.config_json import MAX_DEPTH

if TYPE_CHECKING:
    _Path = str
else:
    _Path = object

T = TypeVar("T")
KEY = "{partition}"
"""In a form: stands for the key of the partition."""
DELIVERY = "{drop}"
"""In a form: stands for the delivery of raw data that the key names; of its revision "2026-01@2", "2026-01"."""
PREFIX = "{prefix}"
"""At the beginning of a form: stands for the prefix of the outputs. It enters the version as this text."""


class ConfigError(InvalidInputError):
    """A config that cannot be versioned, resolved or sent: one sentence with the field and the fix."""


def require_inside(path: Any, owner: str) -> None:
    """Raise ConfigError for a path with a segment "..": it could leave the folder that it is meant to be below."""
    if isinstance(path, str) and ".." in path.replace("\\", "/").split("/"):
        raise ConfigError(
            f"{owner} has the path {path!r}, in which '..' leaves its folder. Give the path without '..'."
        )


def require_below(name: Any, owner: str) -> None:
    """Raise ConfigError for what is no relative path below a folder; None is the folder itself."""
    if name is None:
        return
    if not isinstance(name, str | PurePath) or str(name).startswith("/"):
        raise ConfigError(f"{owner} has the path {name!r}, expected a path below its folder, such as 'data/train'.")
    require_inside(str(name), owner)


class _NoText:
    """A value that stands for another one, and is no part of a text: f"{output_path_of(a)}/x" would lose the input."""

    def __format__(self, spec: str) -> str:
        """Raise ConfigError: the text would neither be a path nor make the step an input. {value!r} shows it."""
        raise ConfigError(
            f"{self!r} is formatted into a text, where it would be lost: its value is not known yet. Write "
            "output_path_of(step, 'x') for a path below an output, this_output_path('x') for one below the step's own, "
            "this_partition(form='…{partition}…') for a text with the key; or wrap the whole text in versioned()."
        )


class StepMarker(_NoText):
    """Base class of Step: it lets this module recognise a step without importing it."""

    name: str
    partitions: Any
    """A set of partitions, or None."""


class Placeholder(_NoText):
    """Base class of what stands for a value that is known only when the output is located."""


@dataclass(frozen=True)
class VersionedValue(_NoText, Generic[T]):
    """A value that enters the version of its step."""

    value: T


@dataclass(frozen=True, eq=False)
class InputName(Placeholder, _Path):
    """The path of the output of `step`, or a path below it; without a step, a path under the prefix."""

    step: StepMarker | None
    name: str | None = None
    """Below the output. KEY or DROP in it stands for the reader's partition."""
    block_on_step: bool = True
    key: str | None = None
    """The key of the partition to read. None: the one of the reader's own key, if the step has partitions."""

    def __post_init__(self) -> None:
        if self.step is not None:
            require_below(self.name, "An input")
        elif not isinstance(self.name, str) or not self.name:
            raise ConfigError(f"InputName.hardcoded({self.name!r}) has no path, expected a text such as 'raw/old-1'.")
        else:
            require_inside(self.name, "An input")

    def cd(self, name: str) -> InputName:
        """A path below this one."""
        require_below(name, "An input")
        return dataclasses.replace(self, name=posixpath.join(self.name, name) if self.name else name)

    def __truediv__(self, name: str) -> InputName:
        return self.cd(name)

    def nonblocking(self) -> InputName:
        """Read the output as it is, without waiting for the step: it enters the version but orders nothing."""
        return dataclasses.replace(self, block_on_step=False)

    @staticmethod
    def hardcoded(path: str) -> InputName:
        """A path that is no step's output: relative to the prefix, or absolute. The text enters the version."""
        return InputName(None, path)

    def __repr__(self) -> str:
        source = self.step.name if self.step is not None else "hardcoded"
        return f"InputName({source!r}, {self.name!r})"


@dataclass(frozen=True, eq=False)
class InputPartitions(Placeholder):
    """The paths of named partitions of `step`, or of `name` below each: a list in the order of the keys."""

    step: StepMarker
    keys: tuple[str, ...]
    name: str | None = None

    def __post_init__(self) -> None:
        require_below(self.name, "An input")


@dataclass(frozen=True, eq=False)
class PartitionsFolder(Placeholder, _Path):
    """The folder of all partitions of `step`, which grows: for the function that takes a snapshot of it."""

    step: StepMarker


@dataclass(frozen=True)
class PartitionName(Placeholder, _Path):
    """The key of the partition that is computed; of one dimension of a product."""

    dimension: str | None = None
    form: str = KEY
    """A text with KEY or DROP in it, for which the key is put in."""
    is_glob: bool = False
    """Whether the text is read as a glob, in which each letter of the key stands for itself."""


@dataclass(frozen=True)
class WindowName(Placeholder):
    """The window of time of the partition that is computed."""

    dimension: str | None = None


@dataclass(frozen=True)
class OutputName(Placeholder, _Path):
    """The path of this step's own output, or a path below it."""

    name: str | None = None

    def __post_init__(self) -> None:
        require_below(self.name, "An output")


@dataclass(frozen=True)
class MirroredValue(Placeholder, _Path):
    """A path that is read from any region that has it."""

    value: Any
    budget_gb: float = 10

    def __post_init__(self) -> None:
        require_inside(self.value, "A mirrored path")

    def __repr__(self) -> str:
        return f"mirrored({self.value!r}, budget_gb={self.budget_gb:g})"


THIS_OUTPUT_PATH: str = cast(str, OutputName(None))
"""Default of a config's output field: the path of the output of the step that the config belongs to."""


def versioned(value: T) -> T:
    """Make `value` enter the version of its step. A field without it can change freely.

    Raises ConfigError for a versioned value and for a path.
    """
    if isinstance(value, VersionedValue):
        raise ConfigError(f"versioned({value!r}) is versioned already. Wrap the value once.")
    if isinstance(value, Placeholder | StepMarker):
        raise ConfigError(
            f"versioned({value!r}) wraps a path, which enters the version by itself. Pass it without versioned()."
        )
    return cast(T, VersionedValue(value))


def ensure_versioned(value: T) -> T:
    """`versioned(value)`, or the value itself if it is versioned."""
    return value if isinstance(value, VersionedValue) else versioned(value)


def unwrap_versioned_value(value: Any) -> Any:
    """The plain value, without the versioned() and mirrored() in it, also in dataclasses, lists, tuples and dicts.

    Raises ConfigError for a path that is not known yet.
    """
    return map_leaves(value, _unwrap)


def output_path_of(step: StepMarker | InputName, name: str | None = None, *, partition: str | None = None) -> InputName:
    """The path of the output of `step`, or of `name` below it. It makes `step` an input of the step that reads it.

    A step with partitions is read at the reader's own key, or at the key `partition`, which enters the version. A
    reader with longer windows of time gets a list: the paths of all windows within its own. In `name`, {partition}
    stands for the key of the reader: output_path_of(training, "exports/{partition}").
    """
    if isinstance(step, InputName):
        input_name = step.cd(name) if name else step
        return input_name if partition is None else dataclasses.replace(input_name, key=partition)
    if not isinstance(step, StepMarker):
        raise ConfigError(f"output_path_of({step!r}) needs a Step. Pass the step itself, not its name or config.")
    return InputName(step, name, key=partition)


def this_partition(dimension: str | None = None, *, form: str = KEY, is_glob: bool = False) -> str:
    """The key of the partition that is computed; for a product, of the named dimension, or both as Dagster has them.

    `form` is a text around the key, such as "s3://crawls/{partition}/wet", or "{prefix}/inbox/{partition}" for a place
    under the prefix. With {drop} in place of {partition}, a later revision of a delivery, "2026-01@2", is read where
    the delivery is. The form enters the version, the prefix does not. With `is_glob`, the letters `*?[` of a key are
    escaped, as the function expands the text as a glob. Raises ConfigError.
    """
    if not isinstance(form, str) or (KEY not in form and DELIVERY not in form):
        raise ConfigError(
            f"this_partition(form={form!r}) has no {KEY} in it, expected one, such as 'deliveries/{KEY}', or "
            f"{DELIVERY}."
        )
    if PREFIX in form.removeprefix(f"{PREFIX}/"):
        raise ConfigError(
            f"this_partition(form={form!r}) has {PREFIX} in another place than the beginning, expected "
            f"'{PREFIX}/inbox/{KEY}', for example."
        )
    return cast(str, PartitionName(dimension, form, is_glob))


def as_glob(value: T) -> T:
    """`value` as a field that is expanded as a glob holds it: the letters of a partition's key stand for themselves."""
    if isinstance(value, PartitionName):
        return dataclasses.replace(value, is_glob=True)
    if isinstance(value, MirroredValue):
        return dataclasses.replace(value, value=as_glob(value.value))
    return value


def this_window(dimension: str | None = None) -> tuple[str, str]:
    """The start and the end of the window of time that is computed, in ISO 8601; for a product, of that dimension."""
    return cast("tuple[str, str]", WindowName(dimension))


def this_output_path(name: str | None = None) -> str:
    """The path of the output of the step that the config belongs to, or of `name` below it."""
    return cast(str, OutputName(name))


def mirrored(value: str, budget_gb: float = 10) -> str:
    """A path under the prefix that may be read from another region, moving at most `budget_gb` GB."""
    if not isinstance(value, str | PurePath | Placeholder | StepMarker | VersionedValue):
        raise ConfigError(f"mirrored({value!r}) got no path, expected a text such as 'raw/dclm', or an input.")
    if isinstance(value, MirroredValue):
        raise ConfigError(f"{value!r} is mirrored already. Wrap the path once.")
    if isinstance(budget_gb, bool) or not isinstance(budget_gb, int | float) or not budget_gb > 0:
        raise ConfigError(f"mirrored({value!r}) has budget_gb={budget_gb!r}, expected a number of GB above 0.")
    return cast(str, MirroredValue(value, budget_gb))


SCALARS = frozenset({str, int, float, bool, type(None)})
"""Types of values with nothing inside."""


def map_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """A copy of `value` with `change` applied to every leaf, in dataclasses, lists, tuples and dicts."""
    if isinstance(value, VersionedValue | Placeholder | StepMarker):
        return change(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [f.name for f in dataclasses.fields(value) if f.init]
        return dataclasses.replace(value, **{name: map_leaves(getattr(value, name), change) for name in fields})
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(map_leaves(item, change) for item in value))
    if isinstance(value, list | tuple):
        return type(value)(map_leaves(item, change) for item in value)
    if isinstance(value, dict):
        return {key: map_leaves(item, change) for key, item in value.items()}
    return change(value)


def without_versions(value: T) -> T:
    """The value without the versioned() in it, also in dataclasses, lists, tuples and dicts. Paths that are known later
    stay."""

    def unwrap(leaf: Any) -> Any:
        return map_leaves(leaf.value, unwrap) if isinstance(leaf, VersionedValue) else leaf

    unwrapped: T = map_leaves(value, unwrap)
    return unwrapped


def require_shallow(value: Any, owner: str) -> None:
    """Raise ConfigError for a value that is nested deeper than a worker can receive it. Takes no recursion."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [part for item in level for part in _parts(item)]
        if not level:
            return
    raise ConfigError(
        f"{owner} is nested more than {MAX_DEPTH} levels deep. Write deep values to a file, and give its path."
    )


@functools.cache
def field_names(kind: Any) -> tuple[str, ...]:
    """The names of a dataclass's fields, listed once: a code location looks at thousands of configs."""
    return tuple(field.name for field in dataclasses.fields(kind))


def _parts(value: Any) -> Sequence[Any]:
    """The values directly inside a value."""
    if type(value) in SCALARS:
        return ()
    if isinstance(value, VersionedValue | MirroredValue):
        return [value.value]
    if isinstance(value, Placeholder | StepMarker):
        return []
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, name) for name in field_names(type(value))]
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else []


def _unwrap(leaf: Any) -> Any:
    if isinstance(leaf, VersionedValue | MirroredValue):
        return unwrap_versioned_value(leaf.value)
    if isinstance(leaf, Placeholder | StepMarker):
        raise ConfigError(f"{leaf!r} is a path that is known only when its step is placed. Resolve the config first.")
    return leaf
