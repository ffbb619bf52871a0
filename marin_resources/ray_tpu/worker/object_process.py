"""An object in a process of its own on this machine, whose methods are called with plain values.

The process ends with the block, and with this process, however that ends. A call may have a time limit; its process is
killed at it. Calls go as lines of JSON over a socket in a private folder. Nothing is pickled.
"""

from __future__ import annotations

import json
import logging
import os
import select
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import partial
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Self

from marin_resources.host.process import cpu_seconds
from marin_resources.ray_tpu.shards.cpu_elsewhere import add_cpu_elsewhere
from marin_resources.ray_tpu.shards.worker_context import activate, worker_context
from marin_resources.ray_tpu.worker.managed_process import ManagedProcess
from marin_resources.types.errors import MarinError
from marin_resources.wire.config_json import decode, encode
from marin_resources.wire.reference import add_import_paths, import_paths, load, reference_to

PROGRAM = "import sys; sys.path.extend(sys.argv[2:]); from {module} import serve; serve(sys.argv[1])"
POLL_S = 0.2
CLOSE_TIMEOUT_S = 10.0
LOSSES = 3
"""Losses of a process without one answer between, after which it is not opened again."""


log = logging.getLogger(__name__)


class CallError(MarinError):
    """The object, or a method of it, raised an error in its process."""


class LostProcessError(MarinError):
    """The process has ended without an answer."""


class ObjectProcess:
    """Opens the object with the block. One thread calls at a time."""

    def __init__(
        self,
        open_object: Callable[..., AbstractContextManager[Any]],
        arguments: Sequence[Any],
        *,
        on_line: Callable[[str], None],
        env: Mapping[str, str] | None = None,
    ) -> None:
        """`open_object` is importable; called with `arguments`, plain values, it gives the object's context manager.

        `on_line` is given what the process prints. `env` are variables beside those of this process.
        """
        self._request = {"open": reference_to(open_object), "arguments": list(arguments), "context": worker_context()}
        self._on_line, self._env = on_line, dict(env or {})
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Start it, and wait until the object is open. Raises CallError, LostProcessError."""
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="marin-object-"))
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(path := os.path.join(folder, "s"))
            listener.listen(1)
            program = PROGRAM.format(module=__name__)
            command = [sys.executable, "-c", program, path, *import_paths()]
            self._process = ManagedProcess(command, env=self._env, on_line=self._on_line)
            stack.callback(self._process.stop)
            while not select.select([listener], [], [], POLL_S)[0]:
                self._require_running()
            self._connection = stack.enter_context(listener.accept()[0])
            self._stream = stack.enter_context(self._connection.makefile("rb"))
            self._ask(self._request, None)
            stack.callback(self._process.stop)  # before the connection is closed: who waits for an answer has none then
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._stack:
            if error is None:
                with suppress(LostProcessError, TimeoutError, OSError):  # it is killed then
                    add_cpu_elsewhere(self._ask({"close": True}, CLOSE_TIMEOUT_S))

    def call(self, method: str, *arguments: Any, timeout_s: float | None = None) -> Any:
        """Return what `method` of the object returns, a plain value.

        Raises CallError; LostProcessError; TimeoutError, after which the object can only be closed.
        """
        return self._ask({"call": method, "arguments": list(arguments)}, timeout_s)

    def _ask(self, request: Mapping[str, Any], timeout_s: float | None) -> Any:
        try:
            self._connection.sendall(json.dumps(encode(request, "request")).encode() + b"\n")
            if not select.select([self._connection], [], [], timeout_s)[0]:
                raise TimeoutError(f"no answer within {timeout_s} s")
            line = self._stream.readline()
        except (BrokenPipeError, ConnectionError) as error:
            raise LostProcessError(self._ended()) from error
        if not line.endswith(b"\n"):
            raise LostProcessError(self._ended())
        answer = decode(json.loads(line))
        if "error" in answer:
            raise CallError(answer["error"])
        return answer["value"]

    def _require_running(self) -> None:
        if self._process.ended.is_set():
            raise LostProcessError(self._ended())

    def _ended(self) -> str:
        self._process.ended.wait(CLOSE_TIMEOUT_S)
        last = " | ".join(list(self._process.last_lines)[-3:])
        return f"A process that the step started has ended with code {self._process.exit_code}. It printed: {last!r}."


class ObjectProcesses:
    """Copies of an object, each in a process of its own, as `Replicas` has them on a cluster. Call from many threads.

    A copy whose process is lost is opened again, and the call is made there.
    """

    def __init__(self, open_one: Callable[[], ObjectProcess], count: int) -> None:
        self._open_one, self._count = open_one, count
        self._free: SimpleQueue[ObjectProcess] = SimpleQueue()
        self._stacks: dict[ObjectProcess, ExitStack] = {}
        self._changing = threading.Lock()
        self._losses = 0
        self._closed = False

    def __enter__(self) -> Self:
        """Open them. Raises CallError, LostProcessError."""
        try:
            for _ in range(self._count):
                self._free.put(self._open())
        except BaseException:  # Ctrl-C too: no process without its block
            self._close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._close()

    def call(self, method: str, *arguments: Any) -> Any:
        """As ObjectProcess.call, of a copy that is free. Raises LostProcessError if copies are lost again and again."""
        process = self._free.get()
        while True:
            try:
                answer = process.call(method, *arguments)
            except LostProcessError as error:
                process = self._reopen(process, error)
            except BaseException:
                self._free.put(process)
                raise
            else:
                self._losses = 0
                self._free.put(process)
                return answer

    def _reopen(self, process: ObjectProcess, error: LostProcessError) -> ObjectProcess:
        with self._changing:
            self._losses += 1
            if self._closed or self._losses > LOSSES * self._count:
                self._free.put(process)
                raise error
            log.warning("%s It is started again.", error)
            self._end(process)
            return self._open()

    def _open(self) -> ObjectProcess:
        stack = ExitStack()
        process = stack.enter_context(self._open_one())
        self._stacks[process] = stack
        return process

    def _end(self, process: ObjectProcess) -> None:
        """Kill one, which may have a call under way."""
        with suppress(OSError):
            self._stacks.pop(process).__exit__(RuntimeError, RuntimeError("it is not closed by a call"), None)

    def _close(self) -> None:
        with self._changing:
            self._closed = True
        with suppress(Empty):
            while True:
                self._stacks.pop(self._free.get_nowait()).close()
        for process in list(self._stacks):
            self._end(process)


def serve(path: str) -> None:
    """Open the object of the first request, and answer further ones until the caller is gone. In its own process."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        with connection.makefile("rb") as stream, ExitStack() as opened:
            first = decode(json.loads(stream.readline()))
            thing: list[Any] = []

            def open_it() -> None:
                add_import_paths(first["context"]["import_paths"])
                opened.enter_context(activate(first["context"]))
                thing.append(opened.enter_context(load(first["open"])(*first["arguments"])))

            if not _answer(connection, open_it):
                return
            for line in stream:
                request = decode(json.loads(line))
                if "close" in request:
                    opened.close()
                    _answer(connection, cpu_seconds)
                    return
                _answer(connection, partial(_call, thing[0], request["call"], request["arguments"]))


def _call(thing: Any, method: str, arguments: Sequence[Any]) -> Any:
    return getattr(thing, method)(*arguments)


def _answer(connection: socket.socket, work: Callable[[], Any]) -> bool:
    """Send what `work` returns, or its error. Returns whether it had none."""
    try:
        answer = {"value": work()}
        line = json.dumps(encode(answer, "answer"))
    except Exception as error:  # whatever it is, the caller gets it
        text = str(error) if isinstance(error, MarinError) else f"{type(error).__name__}: {error}"
        answer, line = {}, json.dumps({"error": text})
    connection.sendall(line.encode() + b"\n")
    return bool(answer)
