"""A launch waits for a code server that is away, as in a redeployment; Dagster's webserver fails it with status 500.

A code server is away for the seconds in which it imports the definitions. What a launch asks it is asked again for a
minute; what a page asks is not, as a page is asked for again by itself.

Seen with Dagster 1.13.27. Related: dagster-io/dagster#14605, a retry that does not wait for its code server. Without
this, a launch during a redeployment fails.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

from dagster import DagsterError
from grpc import RpcError, StatusCode

OF_A_LAUNCH = frozenset({"ExecutionPlanSnapshot", "ExternalPipelineSubsetSnapshot"})
"""The questions of Dagster's code server that a launch in the UI asks."""
PATIENCE_S = 60.0
POLL_S = 0.5


def keep_what_is_loaded(watcher: Any) -> None:
    """Let the module `dagster._grpc.server_watcher` keep the definitions of a code server that is away for as long.
    With Dagster's 10 looks, one each second, a launch finds none after 10 s."""
    watcher.MAX_RECONNECT_ATTEMPTS = round(PATIENCE_S / watcher.WATCH_INTERVAL)


def wait_for_code_server(client: Any) -> None:
    """Let the class of Dagster's gRPC clients be patient where a launch asks."""
    ask, gen_ask = client._query, client._gen_query

    def ask_again(self: Any, method: str, *arguments: Any, **named: Any) -> Any:
        for last in _tries(method):
            try:
                return ask(self, method, *arguments, **named)
            except DagsterError as error:
                if last or not _is_unavailable(error):
                    raise
                time.sleep(POLL_S)
        raise AssertionError("the last try returns or raises")

    async def gen_ask_again(self: Any, method: str, *arguments: Any, **named: Any) -> Any:
        for last in _tries(method):
            try:
                return await gen_ask(self, method, *arguments, **named)
            except DagsterError as error:
                if last or not _is_unavailable(error):
                    raise
                await asyncio.sleep(POLL_S)
        raise AssertionError("the last try returns or raises")

    client._query, client._gen_query = ask_again, gen_ask_again


def _tries(method: str) -> Iterator[bool]:
    """One value for each try: whether it is the last."""
    until_s = time.monotonic() + (PATIENCE_S if method in OF_A_LAUNCH else 0)
    while time.monotonic() < until_s:
        yield False
    yield True


def _is_unavailable(error: DagsterError) -> bool:
    """Not a code server that takes long, or that has failed at the question."""
    return isinstance(error.__cause__, RpcError) and error.__cause__.code() is StatusCode.UNAVAILABLE
