"""The state of all deliveries of a sensor, in the store: a tick's cursor names it, so both exist or neither does.

    <prefix>/.marin/sensors/<sensor>/<number>-<digest>.json.gz  {"format_version": 1, "drops": {name: {…}}, …}
    <prefix>/.marin/sensors/<sensor>/taken/<key>.json.gz        names, sizes and stamps of the files that were taken

Dagster stores the cursor after it has created the runs of a tick. A daemon that is killed before reads the state of the
tick before, decides the same, and its requests have the same run keys, which Dagster does not launch twice.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from marin_resources.storage.files import names_in, read_bytes, remove, write_bytes
from marin_resources.storage.paths import join
from marin_resources.types.partition_key import segment_of
from marin_resources.types.versioned_json import ControlFileError, Required, VersionedJson
from marin_sensors.deliveries.decide import DeliveryPhase, DeliveryState

FOLDER = ".marin/sensors"
SUFFIX = ".json.gz"
FORMAT_VERSION = 1
"""A delivery was called a drop, and is one in the state."""
KEPT = 5
"""States. A test of the sensor in the UI, from whatever cursor, must not remove the one that the real cursor names."""


class StateError(ControlFileError):
    """A state of a sensor that cannot be read: one sentence with its path."""


FORMAT = VersionedJson(
    kind="state of a sensor",
    newest=FORMAT_VERSION,
    error=StateError,
    shape={"drops": Required({}), "last_new": str},
    if_damaged="Reset the sensor's cursor in Dagster's UI: it takes all deliveries again, and complete outputs are "
    "reused.",
)
STAMPS = VersionedJson(
    kind="list of a delivery's files", newest=FORMAT_VERSION, error=StateError, shape={"files": Required({})}
)


@dataclass(frozen=True, kw_only=True)
class State:
    deliveries: Mapping[str, DeliveryState] = field(default_factory=dict)
    last_new: str = ""
    """A phrase: which delivery was taken last, and when."""


class Memory:
    def __init__(self, prefix: str, sensor: str) -> None:
        self._folder = join(prefix, FOLDER, segment_of(sensor))

    def read(self, name: str) -> State:
        """The state of this name; an empty one for an empty name. Raises ControlFileError if it is gone."""
        if not name:
            return State()
        path = self._path(name)
        try:
            fields = FORMAT.parse(_unpacked(path), path)
        except FileNotFoundError:
            raise StateError(f"The state of a sensor at {path!r} is gone. {FORMAT.if_damaged}") from None
        deliveries = {
            name: DeliveryState(**{**row, "phase": DeliveryPhase(row["phase"])})
            for name, row in fields["drops"].items()
        }
        return State(deliveries=deliveries, last_new=fields.get("last_new", ""))

    def write(self, state: State, before: str) -> str:
        """Store the state that follows the one named `before`, and return its name. Remove what is older than KEPT."""
        fields = {
            "format_version": FORMAT_VERSION,
            "drops": {name: asdict(delivery) for name, delivery in sorted(state.deliveries.items())},
            "last_new": state.last_new,
        }
        text = json.dumps(fields, separators=(",", ":")).encode()
        number = _number(before) + 1
        name = f"{number:08}-{hashlib.blake2b(text, digest_size=8).hexdigest()}"
        write_bytes(self._path(name), gzip.compress(text, mtime=0))
        for other in names_in(self._folder):
            if other.endswith(SUFFIX) and _number(other) <= number - KEPT:
                remove(join(self._folder, other))
        return name

    def note_taken(self, key: str, stamps: Mapping[str, str]) -> None:
        """Store the files of a delivery that is taken as the partition `key`."""
        text = json.dumps({"format_version": FORMAT_VERSION, "files": dict(stamps)}, separators=(",", ":"))
        write_bytes(self._taken(key), gzip.compress(text.encode(), mtime=0))

    def taken(self, key: str) -> dict[str, str]:
        """The files that were taken as the partition `key`; empty if that was not noted. Raises ControlFileError."""
        path = self._taken(key)
        try:
            return dict(STAMPS.parse(_unpacked(path), path)["files"])
        except FileNotFoundError:
            return {}

    def _path(self, name: str) -> str:
        return join(self._folder, f"{name}{SUFFIX}")

    def _taken(self, key: str) -> str:
        return join(self._folder, "taken", f"{segment_of(key)}{SUFFIX}")


def _unpacked(path: str) -> bytes:
    try:
        return gzip.decompress(read_bytes(path))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise StateError(f"{path!r} is damaged ({error}). {FORMAT.if_damaged}") from None


def _number(name: str) -> int:
    digits = name.partition("-")[0]
    return int(digits) if digits.isdecimal() else 0
