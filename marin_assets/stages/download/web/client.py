"""Requests to servers, within the limits of connections and of requests in a second."""

from __future__ import annotations

import fcntl
import hashlib
import os
import random
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import cache
from typing import IO, TYPE_CHECKING

from marin_assets.stages.download.web import answers
from marin_assets.stages.download.web.faults import DownloadError, Fault, wait
from marin_assets.stages.download.web.pace import Pace
from marin_assets.stages.download.web.tally import Tally
from marin_resources.configuration.user_agent import user_agent
from marin_resources.host.http_request import origin_of
from marin_resources.types.errors import MarinError

if TYPE_CHECKING:
    import requests

CONTENT = (200, 206)
"""Answers with content."""
LONGEST_TURN_S = 0.1


class Client:
    """Requests of one shard. Safe for many threads.

    `refused` returns the error for an address whose answer has a status that stays. `forbidden`: the reason of a 403,
    "limited" for servers that answer so to many requests. `pace` returns the limit of requests to an origin.
    """

    def __init__(
        self,
        *,
        tally: Tally,
        stop: threading.Event,
        max_connections: int,
        refused: Callable[[str, int], MarinError],
        forbidden: str = "forbidden",
        pace: Callable[[str], Pace] | None = None,
    ) -> None:
        self._tally, self._stop, self._most = tally, stop, max_connections
        self._refused, self._forbidden, self._pace = refused, forbidden, pace
        self._session = _session(max_connections)

    @contextmanager
    def answer(
        self, method: str, url: str, headers: dict[str, str], accepted: Collection[int] = CONTENT
    ) -> Iterator[requests.Response]:
        """An answer with an accepted status. Raises Fault, and the error of `refused` for a status that stays."""
        import requests
        import urllib3

        origin = origin_of(url)
        pace = self._pace(origin) if self._pace is not None else None
        with acquire_connection(origin, self._most, self._stop):
            if pace is not None:
                pace.take()
            self._tally.request()
            try:
                answer = self._session.request(
                    method,
                    url,
                    headers={"User-Agent": user_agent(), "Accept-Encoding": "identity", **headers},
                    stream=True,
                    timeout=(answers.CONNECT_S, answers.STALL_S),
                )
            except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
                raise Fault("connection", f"{origin!r} gave no answer ({type(error).__name__})") from None
            try:
                if answer.status_code not in accepted:
                    self._raise(answer, url, pace)
                yield answer
            finally:
                answer.close()

    def _raise(self, answer: requests.Response, url: str, pace: Pace | None) -> None:
        status, wait_s = answer.status_code, answers.stated_wait_s(answer)
        if status in (429, 503) and wait_s and pace is not None:
            pace.pause(wait_s)  # for all workers; the one that was refused waits as well
        if status in (403, 408, 425, 429) or status >= 500:
            reason = {403: self._forbidden, 429: "limited"}.get(status, "server_error")
            raise Fault(reason, f"the server answered {status}", wait_s)
        if status == 416:
            raise Fault("wrong_range", "the server answered 416")
        raise self._refused(url, status)


@cache
def _session(max_connections: int) -> requests.Session:
    """The connections of this process: a server of many small files is connected to once."""
    import requests  # late, for its weight
    from requests.adapters import HTTPAdapter

    session = requests.Session()
    session.cookies.set_policy(answers.no_cookies())
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(pool_maxsize=max_connections))
    return session


def acquire_connection(origin: str, most: int, stop: threading.Event) -> IO[bytes]:
    """Wait until fewer than `most` connections to an origin are held. Return the lock, which `close` releases.

    The limit is of this machine, for all its processes: a server counts connections by address. A connection holds a
    lock of a file in the temporary folder. The lock of a process that was killed is free at once.
    Raises DownloadError if `stop` is set, or the folder belongs to another user.
    """
    folder = os.path.join(tempfile.gettempdir(), f"marin-connections-{os.getuid()}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if os.lstat(folder).st_uid != os.getuid():
        raise DownloadError(
            f"The folder {folder!r} belongs to another user. Remove it, or set TMPDIR to another folder."
        )
    name = hashlib.sha256(origin.encode()).hexdigest()[:16]
    while True:
        for number in range(most):
            lock = open(os.path.join(folder, f"{name}-{number}"), "ab")  # noqa: SIM115
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return lock
            except BlockingIOError:
                lock.close()
        wait(stop, random.uniform(0.1, 1.0) * LONGEST_TURN_S)
