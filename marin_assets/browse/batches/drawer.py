"""Draw the sequences of a step in a process of its own, under the limits of the request.

In:  the record of a training, a step.   Out: some sequences of its batch.   Written: nothing below a prefix.

One such process answers all requests, one after the other, and stays for the next: it takes seconds to start. The last
answers are kept, as the batch of a step never changes. A question whose browser has closed the connection, another
question than the one that it works at, and MOST_S end the process. A request that reaches its own limit of time does
not: on a busy machine the same request finds the answer when it comes again.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from marin_assets.browse.batches.question import Answer, Question
from marin_assets.browse.errors import LimitError, UnreadableError
from marin_assets.browse.limits import ReaderGoneError
from marin_assets.browse.site import Asked
from marin_assets.browse.stored.state import OutputState
from marin_assets.browse.stored.verdicts import today
from marin_resources.types.errors import MarinError

PAUSE_S = 0.05
MOST_S = 120.0
MOST_ANSWERS, MOST_ANSWER_BYTES = 32, 64 * 1024**2
READY = b"ready\n"
QUIET = {"JAX_PLATFORMS": "cpu", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
"""The order of the data is the same on every device. Nothing is downloaded."""


def draw_batch(asked: Asked, state: OutputState, *, step: int, first: int, count: int) -> Answer:
    """The sequences of the batch of a step. Raises BrowseError, LimitError."""
    question = Question(
        config=_today(state),
        prefixes=asked.places.prefixes,
        step=step,
        first=first,
        count=count,
    )
    return _DRAWER.answer(asked, f"{question.to_json()}\n")


def _today(state: OutputState) -> Any:
    """The config with paths below today's prefix, if the whole prefix was moved since."""

    def moved(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: moved(part) for name, part in value.items()}
        if isinstance(value, list):
            return [moved(part) for part in value]
        return today(state, value) if isinstance(value, str) and "/" in value else value

    return moved(state.record.config)


class Drawer:
    """The process that draws, and its last answers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: OrderedDict[str, Answer] = OrderedDict()
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: Any = None
        self._is_ready = False
        self._buffer = b""
        """The beginning of a line of the process."""
        self._pending: bytes | None = None
        """The question that the process works at."""
        self._asked_at_s = 0.0

    def answer(self, asked: Asked, question: str) -> Answer:
        """The answer to a question. Raises BrowseError, LimitError; UnreadableError if the process dies of it."""
        with self._alone(asked):
            if question not in self._answers:
                answer = Answer.from_json(self._ask(asked, question.encode()).decode())
                if answer.error:
                    error = UnreadableError(answer.error)
                    error.status = answer.status
                    raise error
                self._answers[question] = answer
                while len(self._answers) > MOST_ANSWERS:
                    self._answers.popitem(last=False)
            self._answers.move_to_end(question)
            return self._answers[question]

    def stop(self) -> None:
        """End the process, and what it has started."""
        if self._process is not None:
            with suppress(ProcessLookupError):  # it has ended
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.communicate()
            self._errors.close()
            self._process = None
        self._pending, self._buffer = None, b""

    @contextmanager
    def _alone(self, asked: Asked) -> Iterator[None]:
        """Wait until no other request draws. Raises LimitError."""
        while not self._lock.acquire(timeout=PAUSE_S):
            asked.watch.read(0)
        try:
            yield
        finally:
            self._lock.release()

    def _ask(self, asked: Asked, question: bytes) -> bytes:
        if self._pending not in (None, question):
            self.stop()
        process = self._started(asked)
        try:
            if self._pending is None:
                assert process.stdin is not None
                process.stdin.write(question)
                process.stdin.flush()
                self._pending, self._asked_at_s = question, time.monotonic()
            line = self._line(asked, process)
            self._pending = None
        except (BrokenPipeError, _EndedError):
            raise UnreadableError(self._death(process)) from None
        except ReaderGoneError:
            self.stop()
            raise
        except LimitError as error:  # on a busy machine the next request gets the answer
            if time.monotonic() - self._asked_at_s > MOST_S:
                self.stop()
                raise
            raise LimitError(f"{error} The batch is still drawn: load the page again.") from None
        asked.watch.read(len(line))
        return line

    def _started(self, asked: Asked) -> subprocess.Popen[bytes]:
        """The process when it is ready for a question. Raises LimitError while it is not."""
        if self._process is not None and self._process.poll() is not None:
            self.stop()
        if self._process is None:
            self._errors, self._is_ready = tempfile.TemporaryFile(), False  # noqa: SIM115  it is open as long as that
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", f"{__package__}.draw"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **QUIET},
                cwd="/",
                start_new_session=True,
            )
        if not self._is_ready:
            try:
                self._is_ready = self._line(asked, self._process) == READY
            except _EndedError:
                raise UnreadableError(self._death(self._process)) from None
            except ReaderGoneError:
                raise
            except LimitError as error:
                raise LimitError(
                    f"{error} The process that draws batches is still starting: load the page again."
                ) from None
        return self._process

    def _line(self, asked: Asked, process: subprocess.Popen[bytes]) -> bytes:
        """The next line of the process. Raises LimitError; _EndedError if it ends."""
        assert process.stdout is not None
        out = process.stdout.fileno()
        while True:
            asked.watch.read(0)
            if select.select([out], [], [], PAUSE_S)[0]:
                piece = os.read(out, 1024**2)
                self._buffer += piece
                if not piece:
                    raise _EndedError
                if len(self._buffer) > MOST_ANSWER_BYTES:
                    self.stop()
                    raise UnreadableError(f"The sequences have over {MOST_ANSWER_BYTES:,} bytes, the limit.")
                if piece.endswith(b"\n"):
                    line, self._buffer = self._buffer, b""
                    return line

    def _death(self, process: subprocess.Popen[bytes]) -> str:
        code = process.wait()
        self._errors.seek(max(self._errors.seek(0, os.SEEK_END) - 4000, 0))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        self.stop()
        last = lines[-1][:300] if lines else "it printed nothing"
        return (
            f"The process that draws batches ended with code {code}, by its limit of memory or by damaged data: {last}"
        )


class _EndedError(MarinError):
    """The process has closed its output."""


_DRAWER = Drawer()
