"""A server of one model, as a managed part of a step: OpenAI's completions over HTTP on this machine.

It is started on a port of the system's choice, is ready by its own health check, and writes its log into the step's. It
is started again after a crash, with the requests that were under way. It ends with the step, however the step ends
(`managed_process.py`).
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from marin_assets.inference.endpoint.requests_at_once import message_of, send_all
from marin_assets.inference.engine import Engine, EngineError, RequestError, python_of
from marin_assets.inference.own_python import executable
from marin_resources.ray_tpu.sidecar import ROOT
from marin_resources.ray_tpu.worker.managed_process import ManagedProcess

DEVICES = "CUDA_VISIBLE_DEVICES"
POLL_S = 0.1
TRIES = 3
"""Tries of a request whose server dies under it, and of servers that die without one answer between."""
DEATH_S = 10.0
"""A failure of a server that lives this much longer was no crash."""
CONNECTION_WAITS_S = (0.2, 1.0, 4.0)
"""Waits before a request whose connection broke is sent again: a busy server may refuse one."""
CONNECT_TIMEOUT_S, ANSWER_TIMEOUT_S = 30.0, 3600.0
OUT_OF_MEMORY = re.compile(
    r"^(\S.*?\s)?(?<!except )(?<!raise )[\w.]*(OutOfMemoryError|MemoryError)(:|$)"
    r"|^(\S.*?\s)?[\w.]+Error: .*(out of memory|RESOURCE_EXHAUSTED: .*(memory|allocat))"
    r"|^(\S.*?\s)?[\w.]+Error: .*(Cannot allocate|No available) memory"
    r"|^\s*what\(\): .*out of memory",
    re.IGNORECASE | re.MULTILINE,
)
"""In the lines that a server printed: an error, not the source in its traceback, nor the quota of a bucket."""
PORT_TAKEN = re.compile(r"address already in use", re.I)
SHOWN_LINES = 15
VLLM_ROOM = 2
"""Tokens beyond the window that vLLM needs to score a text which fills it: the text's last, which is no input, and one
that it generates."""
UNSCALED = ("default", "llama3")
"""Kinds of rotary positions that do not change with the length of the window."""
TORCH_SERVER = Path(__file__).parent / "torch_server.py"
"""A script: the Python of that engine lacks this project."""

log = logging.getLogger(__name__)


class ModelServer:
    """A running server of the model in a local folder. Use it in a `with` block; `post` from many threads."""

    def __init__(
        self, engine: Engine, model_folder: str, *, devices: str | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        """`devices` are the GPUs that it sees, as in CUDA_VISIBLE_DEVICES; all of this process if None. `env` are
        further variables of its process. Raises EngineError if the engine's environment does not exist. The server
        starts with the `with` block; one that is started again reads `model_folder`, as it is then."""
        self.engine, self.model_folder = engine, model_folder
        self._env = {**(env or {}), **({} if devices is None else {DEVICES: devices})}
        self.name = f"model-{uuid.uuid4().hex[:8]}"
        """As the server calls the model: another server that took the port does not know it."""
        self.starts = 0
        self.url = ""
        self._python = executable(python_of(engine))
        self._process: ManagedProcess | None = None
        self._deaths = 0
        """Deaths of servers since the last answer."""
        self._changing = threading.Lock()
        self._closed = False
        self._sessions = threading.local()
        """One for each thread that sends, with its connection."""

    def __enter__(self) -> Self:
        """Start it, and wait until it answers. Raises EngineError with the reason and its last lines."""
        try:
            with self._changing:
                self._start()
        except BaseException:  # Ctrl-C too: no server without its block
            self._stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._closed = True
        self._stop()

    @property
    def supervisor(self) -> ManagedProcess:
        """The process of the server, as it runs now."""
        assert self._process is not None
        return self._process

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a POST of `body`, with the model's name in it.

        Blocks. A request under which the server dies is sent again to a new one, three times at most. Raises
        RequestError for a request that the server refuses, EngineError for a server that does not come back.
        """
        for tried in range(1, TRIES + 1):
            with self._changing:  # while a server is started, none accepts requests
                process, url = self.supervisor, self.url
            answer, broken = self._send(f"{url}{path}", {"model": self.name, **body}, process)
            if answer is not None and answer.ok:
                self._deaths = 0
                content: dict[str, Any] = answer.json()
                return content
            if answer is not None and answer.status_code < 500:
                raise RequestError(f"The {self.engine.kind} server refused a request: {message_of(answer)}")
            if self._closed:
                raise EngineError(f"The {self.engine.kind} server was stopped with the step.")
            if not process.ended.wait(DEATH_S):
                raise EngineError(f"The {self.engine.kind} server failed on a request and lives on. {broken}")
            self._start_again(process, tried)
        raise EngineError(f"The {self.engine.kind} server died {TRIES} times on one request. It {why_ended(process)}")

    def _send(self, url: str, body: Mapping[str, Any], process: ManagedProcess) -> tuple[Any, str]:
        """The answer, or None, and what broke. Sends again while the process lives and the connection breaks."""
        import requests  # late, for its weight

        if not hasattr(self._sessions, "own"):
            self._sessions.own = requests.Session()
        broken = ""
        for wait_s in (*CONNECTION_WAITS_S, None):
            try:
                answer = self._sessions.own.post(url, json=body, timeout=(CONNECT_TIMEOUT_S, ANSWER_TIMEOUT_S))
            except requests.RequestException as error:
                broken = f"{type(error).__name__}: {error}"
            else:
                return answer, f"status {answer.status_code}: {message_of(answer)}" if not answer.ok else ""
            if wait_s is None or self._closed or process.ended.wait(wait_s):
                break
        return None, broken

    def map(
        self, path: str, bodies: Iterable[Mapping[str, Any]], on_answer: Callable[[int, dict[str, Any]], None]
    ) -> None:
        """Post all bodies, `engine.concurrency` at once; call `on_answer` with the number of a body and its answer.

        Answers come as they are ready. `bodies` is read as far as they are sent. Raises as `post`; then nothing more
        is sent.
        """
        send_all(lambda body: self.post(path, body), bodies, on_answer, concurrency=self.engine.concurrency)

    def restart(self) -> None:
        """Stop the server, and start one of `model_folder`, while no request is under way. Raises EngineError."""
        with self._changing:
            self._stop()
            self._start()

    def _start(self) -> None:
        for number in range(TRIES):
            port = _free_port()
            self.url = f"http://127.0.0.1:{port}"
            self.starts += 1
            self._process = process = ManagedProcess(
                command_of(self.engine, self._python, self.model_folder, self.name, port),
                env={**environment_of(self.engine), **self._env},
                on_line=partial(log.info, "%s: %s", self.engine.kind),
            )
            if self._wait_until_ready(process):
                return
            if number + 1 == TRIES or not PORT_TAKEN.search("\n".join(process.last_lines)):
                break
        raise EngineError(
            f"The {self.engine.kind} server of {self.model_folder!r} did not start: it {why_ended(process)}"
        )

    def _wait_until_ready(self, process: ManagedProcess) -> bool:
        began_s = time.monotonic()
        while not process.ended.wait(POLL_S):
            if self._answers():
                log.info("the %s server is ready after %.1f s", self.engine.kind, time.monotonic() - began_s)
                return True
            if time.monotonic() - began_s > self.engine.ready_timeout_s:
                process.stop()
                raise EngineError(
                    f"The {self.engine.kind} server of {self.model_folder!r} was not ready after "
                    f"{self.engine.ready_timeout_s:g} s, and was stopped. {_last(process)}"
                )
        return False

    def _answers(self) -> bool:
        import requests  # late, for its weight

        with contextlib.suppress(requests.RequestException, ValueError, KeyError, TypeError):  # or of another program
            if requests.get(f"{self.url}/health", timeout=5).ok:
                models = requests.get(f"{self.url}/v1/models", timeout=5).json()
                return self.name in [model["id"] for model in models["data"]]
        return False

    def _start_again(self, dead: ManagedProcess, tried: int) -> None:
        """Start a server in the place of the dead one, unless another thread has."""
        with self._changing:
            if self._process is not dead or self._closed:
                return
            self._deaths += 1
            reason = why_ended(dead)
            if self._deaths >= TRIES or tried >= TRIES:
                raise EngineError(
                    f"The {self.engine.kind} server died {self._deaths} times without an answer between. It {reason}"
                )
            log.warning("the %s server %s It is started again.", self.engine.kind, reason)
            dead.stop()
            self._start()

    def _stop(self) -> None:
        if self._process is not None:
            self._process.stop()


def command_of(engine: Engine, python: str, model_folder: str, name: str, port: int) -> list[str]:
    """The command of an engine's server."""
    where = ["--model", model_folder, "--served-model-name", name, "--host", "127.0.0.1", "--port", str(port)]
    length = ["--max-model-len", str(engine.max_length)] if engine.max_length else []
    if engine.kind == "vllm":
        length = _with_room(engine, model_folder) or length
    if engine.kind == "jax":
        return [python, "-m", "marin_assets.inference.jax_server", *where, *length, *engine.options]
    program = [str(TORCH_SERVER)] if engine.kind == "torch" else ["-m", "vllm.entrypoints.openai.api_server"]
    return [python, *program, *where, "--dtype", engine.dtype, *length, *engine.options]


def _with_room(engine: Engine, model_folder: str) -> list[str]:
    """Arguments by which vLLM's window is VLLM_ROOM longer than the engine's, so that texts are cut as in this process.

    Where the model has no further positions, its table of rotary ones is made longer, which changes none of them. Empty
    for a model whose positions are learned or scaled, and where `options` set the length or the config.
    """
    path = Path(model_folder, "config.json")
    set_by_options = any(option.startswith(("--max-model-len", "--hf-overrides")) for option in engine.options)
    config = json.loads(path.read_text()) if path.exists() and not set_by_options else {}
    positions = config.get("max_position_embeddings")
    if not isinstance(positions, int) or (window := engine.max_length or positions) > positions:
        return []
    length = window + VLLM_ROOM
    if length <= positions:
        return ["--max-model-len", str(length)]
    rotary = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = rotary.get("rope_type", rotary.get("type", "default"))
    if ("rope_theta" not in config and "rope_theta" not in rotary) or kind not in UNSCALED:
        return []
    longer = {"max_position_embeddings": length, "model_max_length": length}
    return ["--max-model-len", str(length), "--hf-overrides", json.dumps(longer)]


def environment_of(engine: Engine) -> dict[str, str]:
    """Variables of a server, in addition to those of the step: it sends no requests to a hub, and no statistics. Ours
    finds this project where the step does, also where a job's code is not installed; the others must not find it."""
    ours = os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH"))))
    return {
        "HF_HUB_OFFLINE": "1",
        "PYTHONUNBUFFERED": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "PYTHONPATH": ours if engine.kind == "jax" else "",
    }


def why_ended(process: ManagedProcess) -> str:
    """The end of a sentence "it …": the reason that a server has ended, the remedy, and its last lines."""
    text = "\n".join(process.last_lines)
    if OUT_OF_MEMORY.search(text):
        reason = (
            "ran out of memory. Lower --max-model-len, --max-num-seqs or the memory for its cache (Engine.options)."
        )
    elif process.exit_code == -9:
        reason = "was killed (signal 9), as the kernel does when memory is short."
    else:
        how = f"signal {-process.exit_code}" if (process.exit_code or 0) < 0 else f"exit code {process.exit_code}"  # type: ignore[operator]
        reason = f"ended with {how}."
    return f"{reason} {_last(process)}"


def _last(process: ManagedProcess) -> str:
    lines = list(process.last_lines)[-SHOWN_LINES:]
    return "Its last lines:\n" + "\n".join(lines) if lines else "It wrote nothing."


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
