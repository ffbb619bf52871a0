"""Pins: outputs that a person keeps, with the reason.

<prefix>/.marin/pins/<name>-<version>.json                  of an output, or of all partitions of a version
<prefix>/.marin/pins/<name>-<version>/<partition>.json      of a partition
"""

from __future__ import annotations

import dataclasses
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from marin_resources.storage.control import control
from marin_resources.storage.files import names_below, remove
from marin_resources.storage.paths import join
from marin_resources.types.versioned_json import ControlFileError, Required, VersionedJson

FOLDER = ".marin/pins"
"""Folder below the prefix."""
FORMAT_VERSION = 1
SUFFIX = ".json"
THREADS = 32


class PinError(ControlFileError):
    """A pin that cannot be read: one sentence with its path."""


FORMAT = VersionedJson(
    kind="pin",
    newest=FORMAT_VERSION,
    error=PinError,
    shape={**dict.fromkeys(("output", "why", "by", "at"), Required(str)), "alone": Required(bool)},
)


@dataclass(frozen=True, kw_only=True)
class Pin:
    output: str
    """Path below the prefix: "tokenized/web-3f2a1c"."""
    why: str
    by: str
    at: str
    """ISO 8601, UTC."""
    alone: bool = False
    """Whether it keeps that output only, and not what it was made from."""


def write_pin(prefix: str, pin: Pin) -> None:
    """Write the pin over an earlier one of the output. Raises UnavailableError."""
    text = json.dumps({"format_version": FORMAT_VERSION, **dataclasses.asdict(pin)}, indent=2) + "\n"
    control.put(_path(prefix, pin.output), text.encode())


def remove_pin(prefix: str, output: str) -> None:
    remove(_path(prefix, output))


def list_pins(prefix: str) -> list[Pin]:
    """All pins below the prefix, sorted by output. Raises ControlFileError and UnavailableError."""
    names = sorted(name for name in names_below(join(prefix, FOLDER)) if name.endswith(SUFFIX))
    with ThreadPoolExecutor(THREADS) as pool:
        pins = pool.map(lambda name: _read(join(prefix, FOLDER, name)), names)
        return [pin for pin in pins if pin is not None]


def _read(path: str) -> Pin | None:
    snapshot = control.read(path)
    if snapshot is None:
        return None  # it was removed in between
    fields = FORMAT.parse(snapshot.data, path)
    return Pin(**{field.name: fields[field.name] for field in dataclasses.fields(Pin)})


def _path(prefix: str, output: str) -> str:
    return join(prefix, FOLDER, output + SUFFIX)
