"""Processes that make chains of outputs while others collect and purge them, with no grace time at all.

    python -m collected_race make    PREFIX SECONDS SEED JOURNAL
    python -m collected_race collect PREFIX SECONDS SEED JOURNAL

It ends after SECONDS, or when the file JOURNAL.stop exists.

A maker is what a run is: the real `produce`, with a back end that claims and publishes in a thread. Each function reads
its inputs when it begins and before it ends; it notes what it misses. The chain `kept` is of the definitions, `pinned`
ends in a pin, and nothing needs `free` but who is at work. A step of `free` whose input was removed between two steps
of its run is begun again by its next run: that no live attempt or root needed it.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from marin_assets import THIS_OUTPUT_PATH, Step, output_path_of, versioned
from marin_assets.assets.body.request import build_request
from marin_assets.inspection.gc.actions import collect, purge_expired
from marin_assets.inspection.gc.proposals import Choice
from marin_assets.inspection.gc.survey import Definitions, look
from marin_assets.step.graph import Graph, build_graph
from marin_resources.orchestrator.produce import ProduceError, RunCallbacks, produce
from marin_resources.storage.collect.withdraw import Terms
from marin_resources.storage.files import read_bytes, write_bytes
from marin_resources.storage.lease.protocol import LeaseHeldError, LeaseLostError
from marin_resources.storage.output.attempts import latest_attempt
from marin_resources.storage.output.restore import InputGoneError, require_inputs
from marin_resources.storage.output.store import AlreadyDoneError, Store
from marin_resources.storage.paths import join
from marin_resources.storage.usage.cost_estimate import PriceList
from marin_resources.wire.config_json import decode
from marin_resources.wire.outcome import End, Outcome
from marin_resources.wire.task import Task, paths_read

CHAINS = ("kept", "pinned", "free", "spare")
LENGTH = 3
WORK_S = 0.2
"""Of a function, between its two reads; and at most between the look at its inputs and its claim."""
CHOICE = Choice(keep_days=0)
TERMS = Terms(by="race", grace=timedelta(0))


@dataclass(frozen=True, kw_only=True)
class LinkConfig:
    chain: str = versioned("")
    place: int = versioned(0)
    input_path: str = ""
    output_path: str = THIS_OUTPUT_PATH


def make_link(config: LinkConfig) -> dict[str, int]:
    """Reads its input, works, reads it once more, and writes what it read with a word more."""
    before = _read(config)
    time.sleep(WORK_S)
    if _read(config) != before:
        raise AssertionError(f"{config.input_path} changed while it was read")
    write_bytes(join(config.output_path, "words.txt"), before + f"{config.chain}{config.place} ".encode())
    return {"place": config.place}


def _read(config: LinkConfig) -> bytes:
    return read_bytes(join(config.input_path, "words.txt")) if config.input_path else b""


def chain(name: str) -> list[Step]:
    steps: list[Step] = []
    for place in range(LENGTH):
        above = {"input_path": output_path_of(steps[-1])} if steps else {}
        config = LinkConfig(chain=versioned(name), place=versioned(place), **above)
        steps.append(Step(name=f"{name}/link{place}", fn=make_link, config=config))
    return steps


def last_path(name: str) -> str:
    """Of the last output of a chain, below the prefix."""
    steps = chain(name)
    return build_graph(steps)[steps[-1]].output.relative()


class Journal:
    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def note(self, event: str, what: str = "", **more: Any) -> None:
        os.write(self._fd, json.dumps({"event": event, "what": what, "pid": os.getpid(), **more}).encode() + b"\n")


@dataclass(frozen=True)
class Handle:
    outcome: asyncio.Task[Outcome]
    job: str | None = None

    def describe(self) -> str:
        return ""


class ThreadBackend:
    """Claims, calls and publishes as a worker does, in a thread of this process."""

    prefixes = ()

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def attempt_for(self, path: str) -> int:
        return latest_attempt(path) + 1

    async def attach(self, path: str, holder: object) -> None:
        return None

    async def site(self, needs: object, path: str) -> None:
        return None

    def check(self, task: Task) -> None:
        return None

    async def submit(self, task: Task, on_job: object = None, should_detach: object = None) -> Handle:
        return Handle(asyncio.create_task(asyncio.to_thread(self._work, task)))

    async def wait(self, handle: Handle, on_log: object) -> Outcome:
        return await handle.outcome

    def _work(self, task: Task) -> Outcome:
        store = Store(task.prefix)
        time.sleep(random.uniform(0, WORK_S))  # it waits for its machine
        try:
            claim = store.claim(
                task.output,
                attempt=task.attempt,
                resumable=False,
                run_id=None,
                stale_lease=task.stale_lease,
                reads=paths_read(task),
                check_inputs=partial(require_inputs, store, task.inputs),
            )
        except InputGoneError as gone:
            self._journal.note("refused to begin", task.output.name)
            return Outcome(end=End.NOT_BEGUN, error=str(gone))
        except LeaseHeldError as held:
            return Outcome(end=End.HELD, holder=held.holder)
        except (AlreadyDoneError, LeaseLostError):
            return Outcome(end=End.ALREADY_DONE)
        try:
            result = make_link(decode(task.config))
            store.publish(claim, task.facts, result)
        except LeaseLostError:
            claim.lease.release()
            return Outcome(end=End.ALREADY_DONE)
        except Exception as error:  # it is what the test looks for
            self._journal.note("violation", task.output.name, error=f"{type(error).__name__}: {error}")
            store.fail(claim, task.facts, str(error), "")
            return Outcome(end=End.FAILED, error=str(error))
        self._journal.note("computed", task.output.name)
        return Outcome(end=End.SUCCESS)


@dataclass(frozen=True)
class Until:
    at_s: float
    file: str

    def reached(self) -> bool:
        return time.monotonic() > self.at_s or os.path.exists(self.file)


async def make(store: Store, end: Until, chance: random.Random, journal: Journal) -> None:
    """Runs of chains, one after the other; then each chain once more, in peace."""
    while not end.reached():
        await run_chain(store, chance.choice(CHAINS), journal)
        await asyncio.sleep(chance.uniform(0, 0.1))
    for name in CHAINS:
        while not await run_chain(store, name, journal):
            continue


async def run_chain(store: Store, name: str, journal: Journal) -> bool:
    graph = build_graph(chain(name))
    for node in graph:
        request = build_request(node, graph, store, None)
        said: Callable[[str], None] = lambda line: journal.note("brought back") if "collected" in line else None  # noqa: E731
        callbacks = RunCallbacks(log=said, on_log=lambda line: None)
        try:
            await produce(request, store, lambda: ThreadBackend(journal), callbacks=callbacks)  # type: ignore[arg-type, return-value]
        except ProduceError as error:
            removed = name in ("free", "spare") and "which is not complete" in str(error)
            journal.note("input removed" if removed else "violation", node.name, error=str(error))
            return False
    return True


def kept_graph() -> Graph:
    return build_graph(chain("kept"))


def collect_and_purge(store: Store, end: Until, chance: random.Random, journal: Journal) -> None:
    definitions = Definitions(graph=kept_graph(), unknown=())
    while not end.reached():
        found = look(store, definitions, CHOICE, PriceList())
        chosen = [each for each in found.proposals.proposed if chance.random() < 0.7]
        for proposal in chosen:
            if proposal.stored.name.startswith(("kept/", "pinned/")):
                journal.note("violation", proposal.stored.relative, error="it was proposed")
        for done in collect(store, chosen, TERMS):
            journal.note("stayed" if done.kept else "collected", done.relative, why=done.kept)
        found = look(store, definitions, CHOICE, PriceList())
        notes = [note for note in found.stored.collected if chance.random() < 0.5]
        for done in purge_expired(store, notes, found.roots, datetime.now(UTC) + timedelta(seconds=5)):
            journal.note("not purged" if done.kept else "purged", done.relative, why=done.kept)
        time.sleep(chance.uniform(0, 0.1))


if __name__ == "__main__":
    verb, prefix, seconds, seed, path = sys.argv[1:6]
    end = Until(time.monotonic() + float(seconds), f"{path}.stop")
    rest = Store(prefix), end, random.Random(int(seed)), Journal(path)
    if verb == "make":
        asyncio.run(make(*rest))
    else:
        collect_and_purge(*rest)
