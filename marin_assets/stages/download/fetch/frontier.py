"""The queues of hosts, and a heap of the times at which each may be visited.

A host has one connection at a time, and so has an address that hosts share. `take` returns the next job of the host
that may be visited first; it sleeps until then, or until a queue changes. Addresses come from the listing as others
end, so memory holds a window of them.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from marin_assets.stages.download.fetch.slots import Slots
from marin_assets.stages.download.links.addresses import Url

WINDOW = 100_000
"""Addresses that wait in queues."""
HOSTS_HELD = 200_000


@dataclass(eq=False, slots=True)
class Job:
    """A page of the list, or a robots.txt, on its way through redirects and tries."""

    key: str
    """The place in the order of the listing; of a robots.txt its origin."""
    first: Url
    """The address of the list, or of the robots.txt."""
    url: Url
    """The address that is requested next."""
    is_robots: bool = False
    is_over_limit: bool = False
    """Whether the listing has max_pages_per_host addresses of its host before it."""
    tries: int = 0
    """Failures at `url`, those of earlier attempts too."""
    visited: list[str] = field(default_factory=list)
    """Addresses that redirected."""
    records: list[bytes] = field(default_factory=list)
    """WARC records of the redirects."""


@dataclass(eq=False, slots=True)
class Host:
    """One host: its queue, and what is remembered of it."""

    name: str
    pages: deque[Job] = field(default_factory=deque)
    robots: deque[Job] = field(default_factory=deque)
    waits_for: str | None = None
    """An origin whose robots.txt is fetched; pages wait for it."""
    next_s: float = 0.0
    """When it may be visited next, by the monotonic clock."""
    failures: int = 0
    """In a row."""
    ended: str = ""
    """The outcome of all its pages, once it is not visited any more."""
    addresses: tuple[str, ...] = ()
    """Those of its last visit."""
    occupied: tuple[str, ...] = ()
    """Those that it visits now."""
    is_busy: bool = False
    is_queued: bool = False
    """Whether it is in the heap, or waits at an address."""

    @property
    def has_work(self) -> bool:
        return bool(self.robots) or (bool(self.pages) and self.waits_for is None)


class Frontier:
    """The queues of all hosts. Safe for many threads."""

    def __init__(
        self, jobs: Iterator[Job], *, first_wait_s: float, address_delay_s: float = 0.0, window: int = WINDOW
    ) -> None:
        """`first_wait_s`: the time until a host that is new here is visited. `address_delay_s`: the time between two
        visits of an address."""
        self._jobs, self._window, self._first_s = jobs, window, time.monotonic() + first_wait_s
        self._address_delay_s = address_delay_s
        self._slots = Slots[Host]()
        self._hosts: dict[str, Host] = {}
        self._ended: dict[str, str] = {}
        """The outcomes of hosts that ended and are forgotten."""
        self._most_hosts = HOSTS_HELD
        self._heap: list[tuple[float, int, Host]] = []
        self._waiting = self._busy = self._number = 0
        self._is_read, self._is_stopped = False, False
        self._changed = threading.Condition()

    def take(self) -> tuple[Host, Job] | None:
        """The next job, of a host that is busy until `release`; None when all are done, or after `stop`."""
        with self._changed:
            while True:
                if self._is_stopped:
                    return None
                self._refill()
                now_s = time.monotonic()
                if self._heap and self._heap[0][0] <= now_s:
                    host = heapq.heappop(self._heap)[2]
                    if not self._is_due(host, now_s):
                        continue
                    host.is_queued = False
                    host.is_busy = True
                    self._busy += 1
                    self._waiting -= 1
                    return host, (host.robots or host.pages).popleft()
                if not self._heap and not self._busy:
                    self._changed.notify_all()
                    return None
                self._changed.wait(self._heap[0][0] - now_s if self._heap else None)

    def occupy(self, host: Host, addresses: Sequence[str]) -> bool:
        """Begin a request to a host at one of its addresses, until `release`. False if another host is visited at one
        of them, or was just now: then the job has to wait in the queue."""
        with self._changed:
            host.addresses = tuple(addresses)
            if not self._slots.occupy(host.addresses, time.monotonic()):
                return False
            host.occupied = host.addresses
            return True

    def release(self, host: Host, wait_s: float) -> None:
        """End the visit of a host; the next is after `wait_s`."""
        with self._changed:
            now_s = time.monotonic()
            host.is_busy = False
            self._busy -= 1
            host.next_s = max(host.next_s, now_s + wait_s)
            self._slots.leave(host.occupied, now_s + self._address_delay_s)
            self._awaken({*host.occupied, *host.addresses})
            host.occupied = ()
            self._queue(host)
            self._changed.notify_all()

    def add(self, job: Job, *, first: bool = False) -> None:
        """Put a job into the queue of its host."""
        with self._changed:
            host = self._host(job.url.host)
            queue = host.robots if job.is_robots else host.pages
            queue.appendleft(job) if first else queue.append(job)
            self._waiting += 1
            self._queue(host)
            self._changed.notify_all()

    def wait_for(self, host: Host, origin: str) -> None:
        """Let the pages of a host wait for the robots.txt of an origin."""
        with self._changed:
            host.waits_for = origin

    def robots_arrived(self, host_name: str, origin: str) -> None:
        """Continue with the pages that wait for it."""
        with self._changed:
            host = self._host(host_name)
            if host.waits_for == origin:
                host.waits_for = None
                self._queue(host)
                self._changed.notify_all()

    def drain(self, host: Host) -> list[Job]:
        """Take all pages off the queue of a host."""
        with self._changed:
            pages = list(host.pages)
            host.pages.clear()
            self._waiting -= len(pages)
            return pages

    def restore(self, host_name: str, wait_s: float, ended: str, failures: int) -> None:
        """Take what an earlier attempt has noted of a host."""
        with self._changed:
            host = self._host(host_name)
            host.next_s = max(host.next_s, time.monotonic() + wait_s)
            host.ended, host.failures = ended, failures

    @property
    def is_stopped(self) -> bool:
        return self._is_stopped

    def stop(self) -> None:
        """Let `take` return None from now on."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def _refill(self) -> None:
        while not self._is_read and self._waiting < self._window:
            job = next(self._jobs, None)
            if job is None:
                self._is_read = True
                return
            host = self._host(job.url.host)
            host.pages.append(job)
            self._waiting += 1
            self._queue(host)

    def _host(self, name: str) -> Host:
        host = self._hosts.get(name)
        if host is None:
            if len(self._hosts) >= self._most_hosts:
                self._forget()
                self._most_hosts = max(
                    HOSTS_HELD, 2 * len(self._hosts)
                )  # each pass over the hosts is paid by as many new ones
            host = self._hosts[name] = Host(name, next_s=self._first_s, ended=self._ended.get(name, ""))
        return host

    def _forget(self) -> None:
        """Forget hosts without work that may be visited."""
        now_s = time.monotonic()
        for name, host in list(self._hosts.items()):
            is_idle = not (host.pages or host.robots or host.is_busy or host.waits_for)
            if is_idle and host.next_s <= now_s:
                self._ended |= {name: host.ended} if host.ended else {}
                del self._hosts[name]

    def _queue(self, host: Host) -> None:
        if not host.is_busy and not host.is_queued and host.has_work:
            host.is_queued = True
            self._push(host, host.next_s)

    def _push(self, host: Host, at_s: float) -> None:
        self._number += 1
        heapq.heappush(self._heap, (at_s, self._number, host))

    def _is_due(self, host: Host, now_s: float) -> bool:
        """Whether a host from the heap may be visited now; it goes back into the heap, or waits at an address, if
        not."""
        ready_s = host.next_s if host.next_s > now_s else self._slots.ready_s(host, host.addresses)
        if ready_s is None:
            self._awaken(host.addresses)  # it was on its way to its other addresses too
            return False
        if ready_s > now_s:
            self._push(host, ready_s)
        return ready_s <= now_s

    def _awaken(self, addresses: Iterable[str]) -> None:
        """Queue the first host that waits at each of the addresses that are free."""
        for host in self._slots.awakened(sorted(addresses)):
            self._push(host, host.next_s)
