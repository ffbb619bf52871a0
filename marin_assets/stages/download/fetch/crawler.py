"""Fetch the pages of a listing with threads: each address gets an outcome.

Before the first page of an origin its robots.txt is fetched. A redirect is a job for the queue of its host, so that
every request waits for its turn; one to another address of the listing ends there. A failure that may pass is tried
again behind the other pages of its host, after a wait that doubles, or that the server states. Failures and waits are
rows of the batches, so a crawl that was killed counts on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from marin_assets.stages.download.fetch.batches import Batches, Progress
from marin_assets.stages.download.fetch.config import FetchPagesConfig
from marin_assets.stages.download.fetch.exchange import Answer, Client, Limits, retry_after_s
from marin_assets.stages.download.fetch.frontier import HOSTS_HELD, Frontier, Host, Job
from marin_assets.stages.download.fetch.guard import PASSING, FetchFailure
from marin_assets.stages.download.fetch.listing import contains
from marin_assets.stages.download.fetch.robots import MAX_REDIRECTS, ROBOTS_BYTES, Rules, rules_of, rules_of_status
from marin_assets.stages.download.fetch.warc_records import records_of
from marin_assets.stages.download.links.addresses import Url, canonical_url
from marin_assets.stages.download.links.seen_addresses import hash_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

REDIRECTS = (301, 302, 303, 307, 308)
LONGEST_WAIT_S = 300.0
LONGEST_STATED_WAIT_S = 900.0
"""A host that states a longer one by Retry-After is ended: it is not visited before."""
EVERY_S = 5.0
OF_THE_HOST = ("unresolved", "refused_address")
"""Failures that all pages of a host have."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Crawl:
    """The parts of a crawl."""

    config: FetchPagesConfig
    client: Client
    limits: Limits
    frontier: Frontier
    batches: Batches
    listed: NDArray[np.uint64]
    """Hashes of the addresses of the listing."""
    before: Progress


class Crawler:
    """Runs a crawl once."""

    def __init__(self, crawl: Crawl) -> None:
        self._crawl, self._config, self._frontier = crawl, crawl.config, crawl.frontier
        self._rules: dict[str, tuple[Rules, float]] = {}
        self._unused: set[str] = set()
        """Origins whose rules have just arrived: the next page is by them, however short their time is."""
        self._lock = threading.Lock()
        self._error: BaseException | None = None
        self._fetched, self._bytes = crawl.before.fetched, crawl.before.fetched_bytes
        self._outcomes: Counter[str] = Counter()

    def run(self) -> bool:
        """Fetch until every address has an outcome. Return False if a budget ended the crawl before.

        Commits what is complete, also before it raises the error of a thread, or one that interrupts it.
        """
        self._restore_hosts()
        if self._is_spent():
            return False
        try:
            self._wait_for(self._started())
        except BaseException:  # an interrupt: the threads end after the answers that are under way
            self._frontier.stop()
            raise
        finally:
            self._crawl.batches.commit()
        if self._error is not None:
            raise self._error
        return not self._frontier.is_stopped

    def _started(self) -> list[threading.Thread]:
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(self._config.connections)]
        for thread in threads:
            thread.start()
        return threads

    def _wait_for(self, threads: list[threading.Thread]) -> None:
        """Wait for the threads, and meanwhile commit, log, and end the crawl when its time is over."""
        began_s = logged_s = time.monotonic()
        ends_s = began_s + self._config.max_hours * 3600 - self._crawl.before.elapsed_s
        for thread in threads:
            while thread.is_alive():
                thread.join(min(1.0, max(0.0, ends_s - time.monotonic()) or 1.0))
                self._crawl.batches.commit_if_due()
                if time.monotonic() >= ends_s:
                    self._frontier.stop()
                if time.monotonic() - logged_s >= EVERY_S:
                    logged_s = time.monotonic()
                    self._log(logged_s - began_s)

    def _log(self, elapsed_s: float) -> None:
        with self._lock:
            outcomes, done = dict(self._outcomes), sum(self._outcomes.values())
        rest = len(self._crawl.listed) - len(self._crawl.before.done) - done
        log.info("%s of %s addresses have an outcome, %s fetched, %.1f MB, %.1f/s, %.0f s left",
                 f"{len(self._crawl.listed) - rest:,}", f"{len(self._crawl.listed):,}", f"{self._fetched:,}",
                 self._bytes / 1e6, outcomes.get("fetched", 0) / elapsed_s,
                 rest * elapsed_s / max(done, 1))  # fmt: skip

    def _restore_hosts(self) -> None:
        now = time.time()
        for name, row in self._crawl.before.hosts.items():
            wait_s = min(max(0.0, row["not_before"] - now), LONGEST_STATED_WAIT_S)
            self._frontier.restore(name, wait_s, row["ended"], row.get("failures", 0))

    def _work(self) -> None:
        while (turn := self._frontier.take()) is not None:
            host, job = turn
            wait_s = 0.0
            try:
                wait_s = self._visit(host, job)
            except BaseException as error:  # `run` raises it
                self._error = self._error or error
                self._frontier.stop()
            finally:
                self._frontier.release(host, wait_s)

    def _visit(self, host: Host, job: Job) -> float:
        """Take one job a step further. Return the seconds until the host may be visited again."""
        if job.is_robots:
            return self._visit_robots(host, job)
        if host.ended:
            self._end(job, host.ended)
            return 0.0
        if job.is_over_limit:
            self._end(job, "host_limit")
            return 0.0
        origin = job.url.origin
        rules = self._rules_for(origin)
        if rules is None:
            self._request_robots(host, job, origin)
            return 0.0
        refusal = self._refusal(rules, job.url)
        if refusal:
            self._end(job, refusal)
            return 0.0
        delay_s = max(self._config.delay_s, rules.delay_s)
        try:
            answer = self._answer(host, job, self._crawl.limits)
        except FetchFailure as failure:
            return self._failed(host, job, failure, delay_s)
        if answer is None:
            return 0.0
        if host.failures:
            host.failures = 0
            self._note(host, 0.0)
        if answer.status in REDIRECTS and answer.headers.get("location"):
            self._redirected(job, answer)
        else:
            self._end(job, "fetched" if answer.status == 200 else "status", answer=answer)
        return delay_s

    def _answer(self, host: Host, job: Job, limits: Limits) -> Answer | None:
        """An answer that is no error of the server; None if it is not the turn of the host's address, for which the job
        waits. Raises FetchFailure."""
        client = self._crawl.client
        addresses = client.guard.addresses(job.url.host)
        if not self._frontier.occupy(host, addresses if self._config.by_address else ()):
            self._frontier.add(job, first=True)
            return None
        answer = client.fetch(job.url, limits, addresses)
        if answer.status in (408, 425, 429) or answer.status >= 500:
            reason = "limited" if answer.status in (429, 503) else "server_error"
            wait_s = retry_after_s(answer.headers)
            raise FetchFailure(reason, f"the server answered {answer.status}", wait_s=wait_s, status=answer.status)
        return answer

    def _refusal(self, rules: Rules, url: Url) -> str:
        if rules.is_closed:
            return rules.outcome
        if not rules.allows(url, self._config.agent):
            return "robots"
        return "crawl_delay" if rules.delay_s > self._config.max_crawl_delay_s else ""

    def _redirected(self, job: Job, answer: Answer) -> None:
        target = canonical_url(answer.headers["location"], job.url.url)
        if isinstance(target, str):
            self._end(job, "bad_redirect", answer=answer, detail=f"{target}: {answer.headers['location'][:200]}")
        elif target.url in job.visited or target.url == job.url.url:
            self._end(job, "redirect_loop", answer=answer)
        elif contains(self._crawl.listed, hash_of(target.url)):
            self._end(job, "redirected", answer=answer, target=target)
        elif len(job.visited) >= self._config.max_redirects:
            self._end(job, "too_many_redirects", answer=answer)
        else:
            job.visited.append(job.url.url)
            job.records.append(records_of(answer))
            job.url, job.tries = target, 0
            self._frontier.add(job, first=True)

    def _failed(self, host: Host, job: Job, failure: FetchFailure, delay_s: float) -> float:
        """Try again later, or end the job; end the host if it fails as a whole."""
        job.tries += 1
        wait_s = self._back_off(host, failure)
        is_passing = failure.reason in PASSING
        if is_passing and job.tries < self._config.tries and not host.ended:
            self._try_again(job)
        else:
            self._end(job, failure.reason, detail=str(failure), status=failure.status)
        if host.ended:
            for page in self._frontier.drain(host):
                self._end(page, host.ended)
        return max(delay_s, wait_s)

    def _try_again(self, job: Job) -> None:
        if not job.visited:  # after a kill, a page that was redirected begins at its first address, with all its tries
            self._crawl.batches.add({"kind": "try", "key": job.key, "tries": job.tries})
        self._frontier.add(job)

    def _note(self, host: Host, wait_s: float) -> None:
        """Note the state of a host for the next attempt."""
        not_before = time.time() + wait_s
        row = {"host": host.name, "not_before": not_before, "ended": host.ended, "failures": host.failures}
        self._crawl.batches.add({"kind": "host", **row})

    def _back_off(self, host: Host, failure: FetchFailure) -> float:
        """Count a failure of a host, and end it if it fails as a whole. Return the seconds to wait."""
        wait_s = 0.0
        if failure.reason in PASSING:
            host.failures += 1
            wait_s = min(self._config.backoff_s * 2 ** min(host.failures - 1, 20), LONGEST_WAIT_S)
            wait_s = wait_s if failure.wait_s is None else failure.wait_s
        if failure.reason in OF_THE_HOST:
            host.ended = failure.reason
        elif host.failures >= self._config.max_host_failures or wait_s > LONGEST_STATED_WAIT_S:
            host.ended = "host_failed"
        wait_s = min(wait_s, LONGEST_STATED_WAIT_S)
        if failure.reason in PASSING or host.ended:
            self._note(host, wait_s)
        return wait_s

    def _rules_for(self, origin: str) -> Rules | None:
        with self._lock:
            rules, expires_s = self._rules.get(origin, (None, 0.0))
            is_new = origin in self._unused
            self._unused.discard(origin)
        return rules if is_new or time.monotonic() < expires_s else None

    def _request_robots(self, host: Host, job: Job, origin: str) -> None:
        self._frontier.add(job, first=True)
        self._frontier.wait_for(host, origin)
        url = canonical_url(f"{origin}/robots.txt")
        assert isinstance(url, Url)
        tries = self._crawl.before.tries.get(origin, 0)
        self._frontier.add(Job(key=origin, first=url, url=url, is_robots=True, tries=tries))

    def _visit_robots(self, host: Host, job: Job) -> float:
        limits = replace(self._crawl.limits, body_bytes=ROBOTS_BYTES, content_types=(), is_cut=True)
        delay_s = self._config.delay_s
        if host.ended:
            self._set_rules(job, Rules(host.ended if host.ended in OF_THE_HOST else "robots_unreachable"))
            return 0.0
        try:
            answer = self._answer(host, job, limits)
        except FetchFailure as failure:
            job.tries += 1
            wait_s = self._back_off(host, failure)
            if failure.reason in PASSING and job.tries < self._config.tries and not host.ended:
                self._try_again(job)
            else:
                closed = failure.reason if failure.reason in (*OF_THE_HOST, "tls") else "robots_unreachable"
                self._set_rules(job, Rules(closed), detail=str(failure), status=failure.status)
            return max(delay_s, wait_s)
        if answer is None:
            return 0.0
        # failures of the host stay: a crawl that continues reads its robots.txt again, and pages may fail all the same
        target = canonical_url(answer.headers.get("location", ""), job.url.url) if answer.status in REDIRECTS else ""
        if isinstance(target, Url) and len(job.visited) < MAX_REDIRECTS:
            job.visited.append(job.url.url)
            job.url = target
            self._frontier.add(job)
            return delay_s
        if answer.status in REDIRECTS:  # a fifth one, or one to nowhere: RFC 9309, 2.3.1.2
            rules: Rules = Rules("all_allowed")
        else:
            rules = rules_of_status(answer.status) or rules_of(answer.body, self._config.agent)
        self._set_rules(job, rules, status=answer.status, date=answer.date, text=answer.body)
        is_visited = rules.delay_s <= self._config.max_crawl_delay_s
        return max(delay_s, rules.delay_s if is_visited else 0.0)

    def _set_rules(self, job: Job, rules: Rules, *, text: bytes = b"", **facts: Any) -> None:
        with self._lock:
            if len(self._rules) >= HOSTS_HELD:
                self._rules.clear()
                self._unused.clear()
            self._unused.add(job.key)
            self._rules[job.key] = (rules, time.monotonic() + self._config.robots_hours * 3600)
        shown = text.decode("utf-8", "replace") if rules.outcome == "rules" else ""
        row = {"origin": job.key, "outcome": rules.outcome, **facts, "text": shown}
        self._crawl.batches.add({"kind": "robots", **row})
        self._frontier.robots_arrived(job.first.host, job.key)

    def _end(
        self,
        job: Job,
        outcome: str,
        *,
        answer: Answer | None = None,
        target: Url | None = None,
        detail: str = "",
        status: int | None = None,
    ) -> None:
        """Give an address its outcome, once. A page beyond the budget gets none here."""
        row: dict[str, Any] = {"kind": "page", "key": job.key, "url": job.first.url, "outcome": outcome}
        records = b""
        if answer is not None:
            records = b"".join((*job.records, records_of(answer)))
            row |= {"status": answer.status, "date": answer.date, "bytes": len(answer.response)}
        elif status is not None:
            row["status"] = status
        reached = target or (job.url if job.visited else None)
        row |= {"target": reached.url} if reached is not None else {}
        row |= {"detail": detail} if detail else {}
        with self._lock:
            if answer is not None and self._is_spent():
                return
            self._outcomes[outcome] += 1
            self._fetched += outcome == "fetched"
            self._bytes += row.get("bytes", 0)
            if self._is_spent():
                self._frontier.stop()
        self._crawl.batches.add(row, records)

    def _is_spent(self) -> bool:
        most = ((self._fetched, self._config.max_pages), (self._bytes, self._config.max_bytes))
        is_late = self._crawl.before.elapsed_s >= self._config.max_hours * 3600
        return is_late or any(limit is not None and value >= limit for value, limit in most)
