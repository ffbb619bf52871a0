"""A launch waits for a code server that is away, as in a redeployment; Dagster's webserver fails it with status 500.

A code server is away for the seconds in which it imports the definitions. The requests of a launch are repeated for a
minute; those of a page are not, as a page is loaded again by itself.

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
"""The requests that a launch in the UI sends to Dagster's code server."""
PATIENCE_S = 60.0
POLL_S = 0.5


def keep_what_is_loaded(watcher: Any) -> None:
    """Let the module `dagster._grpc.server_watcher` keep the definitions of a code server that is away for as long.
    With Dagster's 10 looks, one each second, a launch finds none after 10 s."""
    watcher.MAX_RECONNECT_ATTEMPTS = round(PATIENCE_S / watcher.WATCH_INTERVAL)


def wait_for_code_server(client: Any) -> None:
    """Let the class of Dagster's gRPC clients retry the requests of a launch."""
    query, gen_query = client._query, client._gen_query

    def query_again(self: Any, method: str, *arguments: Any, **named: Any) -> Any:
        for last in _tries(method):
            try:
                return query(self, method, *arguments, **named)
            except DagsterError as error:
                if last or not _is_unavailable(error):
                    raise
                time.sleep(POLL_S)
        raise AssertionError("the last try returns or raises")

    async def gen_query_again(self: Any, method: str, *arguments: Any, **named: Any) -> Any:
        for last in _tries(method):
            try:
                return await gen_query(self, method, *arguments, **named)
            except DagsterError as error:
                if last or not _is_unavailable(error):
                    raise
                await asyncio.sleep(POLL_S)
        raise AssertionError("the last try returns or raises")

    client._query, client._gen_query = query_again, gen_query_again


def _tries(method: str) -> Iterator[bool]:
    """One value for each try: whether it is the last."""
    until_s = time.monotonic() + (PATIENCE_S if method in OF_A_LAUNCH else 0)
    while time.monotonic() < until_s:
        yield False
    yield True


def _is_unavailable(error: DagsterError) -> bool:
    """Whether the code server is away: not if it takes long, or has failed at the request."""
    return isinstance(error.__cause__, RpcError) and error.__cause__.code() is StatusCode.UNAVAILABLE
