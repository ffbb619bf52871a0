"""`kill -9` of a step's worker at every point between its first byte and SUCCESS: the next run ends as if nothing was.

Left behind, and allowed: marks and logs of attempts, which are their history; `.marin/aside`, where half a thing is
kept that nobody goes on with; on a disk hidden temporary files, each the half of a control file that a killed process
was writing (those of data are removed or moved aside); in a bucket the lease, which is never deleted.
"""

from __future__ import annotations

import json
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gated_steps
import object_stores
import pytest
from worker_nursery import Nursery

from marin_assets.documents import write_rows
from marin_assets.stages.transform.ingest import IngestConfig, ingest
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.configuration.settings import project_root
from marin_resources.ray_tpu.log.spool import upload_spool
from marin_resources.storage.control import control
from marin_resources.storage.fault_points import (
    IN_A_REGION,
    OF_A_COLLECTION,
    OF_A_FORCED_RUN,
    OF_A_PURGE,
    OF_AN_UNDO,
    POINTS,
    VARIABLE,
)
from marin_resources.storage.files import list_files, sizes_below
from marin_resources.storage.lease import lease
from marin_resources.storage.manifest.manifest import read_manifest, take_manifest
from marin_resources.storage.output import attempts
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import is_local, join
from marin_resources.types.output import Output
from marin_resources.wire.config_json import encode
from marin_resources.wire.reference import reference_to
from marin_resources.wire.task import Task

X = Output(name="documents/x", version="abc123", identity="a" * 64)
OF_LEFTOVERS = ("leftovers half moved", "leftovers moved")
IN_A_BUCKET = tuple(point for point in POINTS if point != "file half written")
"""A small file is written in one request; see the big one below."""
ALLOWED = re.compile(r"\.marin/(aside|attempts)/.*|(.*/)?\.[^/]*\.tmp|" + re.escape(lease.NAME))


def points(of: tuple[str, ...], *more: str) -> list[Any]:
    """(point, resumable): a step that goes on with what is there moves no leftovers."""
    every = [(point, resumable) for point in (*of, *more) for resumable in (False, True)]
    return [
        pytest.param(point, resumable, id=f"{point}, {'resumed' if resumable else 'begun anew'}")
        for point, resumable in every
        if not (resumable and point in OF_LEFTOVERS)
    ]


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    nursery = Nursery()
    yield nursery
    nursery.end()


class Killed:
    """A step on a prefix, whose worker is killed and started again."""

    def __init__(self, prefix: str, nursery: Nursery, fn: Callable[..., Any], config: Any, resumable: bool) -> None:
        self.store, self._nursery, self._fn, self._config = Store(prefix), nursery, fn, config
        self.path, self._resumable = self.store.locate(X), resumable

    def kill_at(self, point: str) -> None:
        status, outcome = self._start(point)
        assert (status, outcome) == (-signal.SIGKILL, None), f"{point!r} was not reached"
        for attempt in range(1, attempts.latest_attempt(self.path) + 1):
            if not is_local(self.path):
                upload_spool(attempts.log_path(self.path, attempt))  # as its orchestrator does for a worker that died

    def complete(self) -> None:
        """As an orchestrator does: look, take over what is dead, look again."""
        for _ in range(2):
            if self.store.look([X])[X].done:
                return
            status, outcome = self._start("")
            assert status == 0
            assert outcome is not None
            assert outcome["end"] in ("success", "already_done"), outcome
        assert self.store.look([X])[X].done

    def _start(self, point: str) -> tuple[int, dict[str, Any] | None]:
        holder = lease.holder_of(self.path)
        config: Any = encode(unwrap_versioned_value(self._config))
        task = Task(
            output=X,
            prefix=self.store.prefix,
            path=self.path,
            fn=reference_to(self._fn),
            config=config,
            attempt=attempts.latest_attempt(self.path) + 1,
            resumable=self._resumable,
            stale_lease=holder.generation if holder else None,
            facts={"name": X.name},
        )
        return self._nursery.run(json.dumps(task.to_dict()), **{VARIABLE: point})

    def require_equal(self, undisturbed: Killed) -> None:
        """The same bytes, the same manifest, and nothing else left than is allowed."""
        manifest = read_manifest(self.path)
        assert manifest is not None
        assert manifest == take_manifest(self.path)
        assert manifest == read_manifest(undisturbed.path)
        names = [name.removeprefix(self.path) for name in list_files(self.path)]
        for name in names:
            assert data_at(self.path, name) == data_at(undisturbed.path, name)
        more = names_below(self.path) - names_below(undisturbed.path)
        assert [name for name in sorted(more) if not ALLOWED.fullmatch(name)] == []
        less = names_below(undisturbed.path) - names_below(self.path)
        assert [name for name in sorted(less) if not ALLOWED.fullmatch(name)] == []
        temporary = [name for name in more if name.endswith(".tmp") and not name.startswith(".marin/aside/")]
        assert not temporary or is_local(self.path)
        seen = self.store.look([X])[X]
        assert seen.holder is None
        assert seen.record.to_dict()["manifest"] == manifest.summary()


def names_below(path: str) -> Counter[str]:
    """Names of all files; those of shards' notes are digests that the output's path is in."""
    return Counter(re.sub(r"^(\.marin/shards/.*)/\w+\.json$", r"\1/*.json", name) for name in sizes_below(path))


def data_at(path: str, name: str) -> bytes:
    found = control.read(join(path, name))
    assert found is not None
    return found.data


def killed_ingest(prefix: str, nursery: Nursery, resumable: bool) -> Killed:
    """A step of three shards, one of which is large."""
    raw = join(prefix, "raw")
    for number in range(3):
        rows = [{"text": f"{number} and {row}: " + "word " * 40 * (number + 1)} for row in range(50)]
        write_rows(join(raw, f"{number}.jsonl.gz"), rows)
    config = IngestConfig(input_path=raw, output_path=Store(prefix).locate(X))
    return Killed(prefix, nursery, ingest, config, resumable)


def check(prefix: str, nursery: Nursery, point: str, resumable: bool) -> None:
    undisturbed, killed = (killed_ingest(join(prefix, name), nursery, resumable) for name in ("whole", "killed"))
    undisturbed.complete()
    if point in OF_LEFTOVERS:
        killed.kill_at("shard noted@2")
    killed.kill_at(point)
    killed.complete()
    killed.require_equal(undisturbed)


@pytest.mark.parametrize(("point", "resumable"), points(POINTS, "shard noted@2", "shard written@3"))
def test_on_a_disk(disk_prefix: str, nursery: Nursery, point: str, resumable: bool) -> None:
    check(disk_prefix, nursery, point, resumable)


@pytest.mark.long
@pytest.mark.parametrize(("point", "resumable"), points(IN_A_BUCKET, "shard noted@2", "shard written@3"))
def test_on_gcs(gcs_prefix: str, nursery: Nursery, point: str, resumable: bool) -> None:
    check(gcs_prefix, nursery, point, resumable)


@pytest.mark.long
@pytest.mark.parametrize("point", ["commit claimed", "leftovers half moved", "shard noted@2", "commit published"])
def test_on_s3(nursery: Nursery, point: str) -> None:
    check(object_stores.s3_prefix(), nursery, point, resumable=False)


@pytest.mark.long
@pytest.mark.parametrize("time", range(1, 12))
@pytest.mark.parametrize("point", ["file half written", "file written aside"])
@pytest.mark.parametrize("resumable", [False, True])
def test_at_every_file_of_a_disk(disk_prefix: str, nursery: Nursery, point: str, time: int, resumable: bool) -> None:
    """Control files are written this way too, there."""
    check(disk_prefix, nursery, f"{point}@{time}", resumable)


@pytest.mark.parametrize("resumable", [pytest.param(False, marks=pytest.mark.long), True])
def test_a_big_file_that_is_half_in_a_bucket(gcs_prefix: str, nursery: Nursery, resumable: bool) -> None:
    both = []
    for name in ("whole", "killed"):
        prefix = join(gcs_prefix, name)
        config = gated_steps.BigConfig(megabytes=33, output_path=Store(prefix).locate(X))
        both.append(Killed(prefix, nursery, gated_steps.write_a_big_file, config, resumable))
    undisturbed, killed = both
    undisturbed.complete()
    killed.kill_at("file half written")
    killed.complete()
    killed.require_equal(undisturbed)


def test_the_points_are_those_in_the_sources() -> None:
    sources = [path.read_text() for path in Path(project_root(), "marin_resources").rglob("*.py")]
    sources += [path.read_text() for path in Path(project_root(), "marin_assets").rglob("*.py")]
    found = {point for text in sources for point in re.findall(r'reach\("([^"]+)"\)', text)}
    assert found == {*POINTS, *IN_A_REGION, *OF_AN_UNDO, *OF_A_COLLECTION, *OF_A_FORCED_RUN, *OF_A_PURGE}
