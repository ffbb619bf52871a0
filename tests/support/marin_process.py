"""A process of the real marin-core, in an environment of its own, that does what it is asked (`marin_side.py`)."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "benchmarks/sides"))

from marin_core import marin_environment, marin_python  # noqa: E402

START_TIMEOUT_S = 280
"""To make the environment takes half a minute where the index is near."""


class MarinProcess:
    """`log` gets what it prints. `python` is the interpreter, once it has started."""

    def __init__(self, log: Path, *, python: Sequence[str] = (), heartbeat_s: float = 30) -> None:
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [*(python or marin_python()), str(HERE / "marin_side.py"), str(heartbeat_s)],
                env=marin_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=log.parent,
            )
        self._numbers = itertools.count(1)
        self._asked: dict[int, Future[Any]] = {0: Future()}
        self._started = self._asked[0]
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def python(self) -> str:
        return str(self._started.result(START_TIMEOUT_S))

    def ask(self, do: str, **words: Any) -> Any:
        """The answer. Raises RuntimeError with what Marin raised."""
        return self.begin(do, **words).result(200)

    def begin(self, do: str, **words: Any) -> Future[Any]:
        """The same, without waiting for the answer."""
        self._started.result(START_TIMEOUT_S)
        number, answer = next(self._numbers), Future[Any]()
        self._asked[number] = answer
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"id": number, "do": do, **words}) + "\n")
        self._process.stdin.flush()
        return answer

    def kill(self) -> None:
        """End it as a crash would. For one that was started with `python`."""
        self._process.kill()
        self.end()

    def end(self) -> None:
        """It ends with its input."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            told = json.loads(line)
            answer = self._asked.pop(told["id"])
            if "error" in told:
                answer.set_exception(RuntimeError(told["error"]))
            else:
                answer.set_result(told["answer"])
        for answer in self._asked.values():
            answer.set_exception(RuntimeError(f"marin-core's process is gone:\n{self._log.read_text()[-3000:]}"))
