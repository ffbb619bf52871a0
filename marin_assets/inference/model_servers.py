"""The servers of one model, among which the requests of a step are spread: on this machine, or on the cluster's hosts.

An answer does not depend on the server that gives it, but for last digits, which change with the batch it is in.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any, Self

from marin_assets.inference.endpoint.requests_at_once import send_all
from marin_assets.inference.engine import Engine, EngineError, are_elsewhere
from marin_assets.inference.local_copy import copy_to_local
from marin_assets.inference.server import DEVICES, ModelServer
from marin_resources.ray_tpu.shards.replicas import Replicas
from marin_resources.wire.config_json import decode, encode


class ModelServers:
    """The running servers of an engine. Use it in a `with` block; `post` from many threads."""

    def __init__(self, engine: Engine, model_folder: str, model_path: str) -> None:
        """`model_folder` is a copy of the export at `model_path` on this machine. Raises EngineError if the engine's
        environment does not exist, or the devices of this machine cannot be shared. The block starts the servers."""
        self.engine = engine
        self._servers: _Here | _Elsewhere = (
            _servers_elsewhere(engine, model_path) if are_elsewhere(engine) else _Here(engine, model_folder)
        )

    def __enter__(self) -> Self:
        """Start them, and wait: for all on this machine, elsewhere for the first. Raises EngineError."""
        self._servers.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._servers.__exit__(kind, error, at)

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """As ModelServer.post, of the server with the fewest requests."""
        return self._servers.post(path, body)

    def map(
        self, path: str, bodies: Iterable[Mapping[str, Any]], on_answer: Callable[[int, dict[str, Any]], None]
    ) -> None:
        """As ModelServer.map, with `engine.concurrency` requests at once at each server."""
        at_once = self.engine.concurrency * self.engine.servers
        send_all(lambda body: self.post(path, body), bodies, on_answer, concurrency=at_once)


class _Here:
    """Servers on this machine, which share its devices."""

    def __init__(self, engine: Engine, model_folder: str) -> None:
        shares = shares_of(os.environ.get(DEVICES), engine.servers)
        self._servers = [ModelServer(engine, model_folder, devices=devices) for devices in shares]
        self._under_way = [0] * len(shares)
        self._changing = threading.Lock()

    def __enter__(self) -> Self:
        with ExitStack() as stack, ThreadPoolExecutor(len(self._servers)) as pool:
            for started in [pool.submit(stack.enter_context, server) for server in self._servers]:
                started.result()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *ended: Any) -> None:
        self._stack.close()

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        with self._changing:
            place = min(range(len(self._servers)), key=self._under_way.__getitem__)
            self._under_way[place] += 1
        try:
            return self._servers[place].post(path, body)
        finally:
            with self._changing:
                self._under_way[place] -= 1


class _Elsewhere:
    """Servers on hosts of the cluster, each in a process that Ray places by the engine's `server_resources`."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas

    def __enter__(self) -> Self:
        self._replicas.__enter__()
        return self

    def __exit__(self, *ended: Any) -> None:
        self._replicas.__exit__(*ended)

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self._replicas.call("post", path, dict(body))
        return answer


def _servers_elsewhere(engine: Engine, model_path: str) -> _Elsewhere:
    assert engine.server_resources is not None  # `are_elsewhere`
    return _Elsewhere(
        Replicas(
            served_export,
            (json.dumps(encode(engine, "engine")), model_path),
            count=engine.servers,
            resources=engine.server_resources,
            calls_at_once=engine.concurrency,
        )
    )


@contextmanager
def served_export(engine: str, model_path: str) -> Iterator[ModelServer]:
    """A server of the export at `model_path` on the machine of this process, for the block. `engine` is JSON."""
    with tempfile.TemporaryDirectory(prefix="model-") as folder:
        here = model_path if os.path.isdir(model_path) else copy_to_local(model_path, folder)
        with ModelServer(decode(json.loads(engine)), here) as server:
            yield server


def shares_of(devices: str | None, servers: int) -> list[str | None]:
    """The part of CUDA_VISIBLE_DEVICES for each server; None where it is not set: all see all devices.

    Raises EngineError for devices that cannot be shared evenly.
    """
    if servers == 1 or not devices:
        return [None] * servers
    ids = devices.split(",")
    if len(ids) % servers:
        raise EngineError(
            f"The engine has servers={servers}, and this step has {len(ids)} devices, which {servers} servers cannot "
            "share evenly. Set servers to a divisor of it."
        )
    size = len(ids) // servers
    return [",".join(ids[begin : begin + size]) for begin in range(0, len(ids), size)]
