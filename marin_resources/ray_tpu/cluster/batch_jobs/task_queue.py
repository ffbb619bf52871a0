"""The task queue of a batch job: messages to it, as numbered files `<n>.json` in a folder of the prefix.

A message is created only if no other has its number, so several processes may post: a run its steps, another run or
`marin cluster stop-job` a stop. The batch job reads the numbers one after the other, without a listing. It closes the
task queue by posting the last message itself; whoever posts after that learns that nobody reads any more.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from marin_resources.storage.control import control
from marin_resources.storage.control.protocol import ConflictError
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError
from marin_resources.types.versioned_json import ControlFileError, Required, VersionedJson

FOLDER = ".marin/carriers"
"""Below the prefix."""
FORMAT_VERSION = 1


class TaskQueueError(ControlFileError):
    """A message that cannot be read: one sentence with its path."""


class TaskQueueClosedError(MarinError):
    """The batch job has closed its task queue, and reads no more messages."""


FORMAT = VersionedJson(
    kind="message to a batch job",
    newest=FORMAT_VERSION,
    error=TaskQueueError,
    shape={"run": Required([str]), "stop": Required([str]), "end": Required(bool), "closed": Required(bool)},
    if_newer="Update this checkout, or the image of the cluster.",
)


@dataclass(frozen=True, kw_only=True)
class Message:
    run: tuple[str, ...] = ()
    """Paths of the notes of steps to run. A note that the batch job knows is ignored."""
    stop: tuple[str, ...] = ()
    """Paths of the notes of steps to stop."""
    end: bool = False
    """No more steps will come: the batch job ends after the last one."""
    closed: bool = False
    """Posted by the batch job: it reads no more."""


def task_queue_path(prefix: str, batch_job: str) -> str:
    return join(prefix, FOLDER, batch_job)


class TaskQueue:
    """One process's view. Not thread-safe."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._next = 1

    def post(self, message: Message) -> None:
        """Post a message. Raises TaskQueueClosedError, and UnavailableError if the store does not answer."""
        fields = {"format_version": FORMAT_VERSION, **asdict(message), "id": uuid.uuid4().hex}
        data = json.dumps(fields).encode()
        while True:
            try:
                control.write(self._path(self._next), data, expected=None)
            except ConflictError:
                existing = self._read(self._next)
                if existing is not None and existing.closed:
                    raise TaskQueueClosedError(f"The batch job of {self.path!r} has ended.") from None
                self._next += 1
            else:
                self._next += 1
                return

    def new(self) -> Iterator[Message]:
        """Yield the messages that this object has not yielded or posted yet, in their order."""
        while (message := self._read(self._next)) is not None:
            self._next += 1
            yield message

    def close(self) -> bool:
        """Close the task queue, unless it has a new message. Return whether it is closed."""
        data = {"format_version": FORMAT_VERSION, **asdict(Message(closed=True)), "id": uuid.uuid4().hex}
        try:
            control.write(self._path(self._next), json.dumps(data).encode(), expected=None)
        except ConflictError:
            return False
        return True

    def _read(self, number: int) -> Message | None:
        path = self._path(number)
        file = control.read(path)
        if file is None:
            return None
        fields = FORMAT.parse(file.data, path)
        return Message(run=tuple(fields["run"]), stop=tuple(fields["stop"]), end=fields["end"], closed=fields["closed"])

    def _path(self, number: int) -> str:
        return join(self.path, f"{number}.json")
