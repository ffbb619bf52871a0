"""Weights from the memory of the training to its samplers, by Arrow Flight: no file is written or read on the way.

Who has no token gets an error for each request. A token is no encryption: the server listens at one address of its
host, whose network keeps others out, as that of a Ray cluster.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

CHUNK_BYTES = 16 * 2**20
SCHEMA = pa.schema([("content", pa.binary())])
HEADER = "authorization"
TIMEOUT_S = 600.0
"""Time limit of the transfer of the weights of one step."""


class WeightsServer(flight.FlightServerBase):  # type: ignore[misc]
    """Serves contents by the number of updates. It runs from its making until `shutdown`."""

    def __init__(self, host: str) -> None:
        """`host`: the address at which it listens, by which samplers reach it."""
        self.token = secrets.token_hex(32)
        self._tables: dict[int, pa.Table] = {}
        super().__init__(f"grpc://{host}:0", middleware={"token": _RequireToken(self.token)})
        self.url = f"grpc://{host}:{self.port}"

    def put(self, weights_step: int, content: bytes | bytearray) -> None:
        """Serve these bytes, without a copy of them."""
        chunks = [memoryview(content)[at : at + CHUNK_BYTES] for at in range(0, len(content), CHUNK_BYTES)]
        self._tables[weights_step] = pa.Table.from_batches([_batch(chunk) for chunk in chunks], SCHEMA)

    def remove_before(self, weights_step: int) -> None:
        for older in [step for step in self._tables if step < weights_step]:
            self._tables.pop(older, None)

    def do_get(self, context: Any, ticket: flight.Ticket) -> flight.RecordBatchStream:
        """Called by Flight, in a thread of its own."""
        table = self._tables.get(int(ticket.ticket))
        if table is None:
            raise flight.FlightServerError(f"no weights after {int(ticket.ticket)} updates are served any more")
        return flight.RecordBatchStream(table)


class WeightsClient:
    """A connection to a server. Raises FlightError, and what Arrow raises for a call."""

    def __init__(self, url: str, token: str) -> None:
        self._client = flight.FlightClient(url)
        header = (HEADER.encode(), f"Bearer {token}".encode())
        self._options = flight.FlightCallOptions(timeout=TIMEOUT_S, headers=[header])

    def get(self, weights_step: int, size: int) -> bytearray:
        """The content of a step, of `size` bytes."""
        content, at = bytearray(size), 0
        for chunk in self._client.do_get(flight.Ticket(str(weights_step).encode()), self._options):
            part = chunk.data.column(0)[0].as_buffer()
            content[at : at + part.size] = memoryview(part)
            at += part.size
        return content

    def close(self) -> None:
        self._client.close()


class _RequireToken(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        super().__init__()
        self._expected = f"Bearer {token}"

    def start_call(self, info: Any, headers: Mapping[str, Sequence[str]]) -> None:
        given = headers.get(HEADER, ("",))[0]
        if not hmac.compare_digest(str(given).encode(), self._expected.encode()):
            raise flight.FlightUnauthenticatedError("the server of the weights serves samplers of its training alone")


def _batch(chunk: memoryview) -> pa.RecordBatch:
    """One row with these bytes."""
    ends = pa.array([0, len(chunk)], pa.int32()).buffers()[1]
    return pa.record_batch([pa.Array.from_buffers(pa.binary(), 1, [None, ends, pa.py_buffer(chunk)])], SCHEMA)
