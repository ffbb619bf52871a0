"""Which tests are long, which come first, and which share a process of pytest-xdist.

With `--dist loadfile` a file stays in one process, so its fixtures are set up once. Files that need the same expensive
thing share a process too. (`--dist loadgroup` is for that, but xdist 3.8 ignores groups under pytest 9.2.)
"""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

SHARED = {
    "quickstart": re.compile(r"\b(tiny|full)_quickstart\b"),
    "cluster": re.compile(r"\bcluster: Cluster\b|\bjobs_there\b"),
    "jax": re.compile(r"/stages/(train|evaluate|tokenize)/"),
    "ray": re.compile(r"(?<!getfixturevalue\(\")\bshared_ray\b|\Atests/marin_resources/[\s\S]*\bwhere: str\b"),
}
"""Group -> what its files have in their text or path: session fixtures and imports that cost more, in each process that
has them, than a balanced load saves."""

IMPORTS = ("jax",)
"""Groups for the sake of imports alone: beside long tests these cost little, and one process would have hours more to
do than the others."""

SLOW_TESTS = frozenset((Path(__file__).parents[1] / "slow_tests.txt").read_text().splitlines())
"""Ids of tests that take 0.2 s or more on two cores, and are not the one proof of what people rely on. An id without
parameters stands for all of them, and a file for all of its tests, as it is where what they share takes long.
`pytest --durations=0` measures; CONTRIBUTING.md describes how the file is kept."""

SLOW_FOLDERS = {"stories", "docs", "train"}

WITH_S3 = (
    "marin_resources/storage/control",
    "marin_resources/storage/upload",
    "marin_resources/storage/manifest/test_checksum",
)
"""Where code is written for S3: there `make test` runs tests on it too. In other files S3 is one more fsspec store, and
these tests are long."""


def _mostly_on(store: str) -> pytest.MarkDecorator:
    stores = [pytest.param(each, marks=[] if each == store else pytest.mark.long) for each in ("disk", "gcs", "s3")]
    return pytest.mark.parametrize("any_prefix", stores, indirect=True)


mostly_on_gcs, mostly_on_a_disk = _mostly_on("gcs"), _mostly_on("disk")
"""For a test of `any_prefix` that is expensive: on other stores it is long."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Not even import a file whose tests are all long, where no long test runs: a fourth of the collection."""
    if config.getoption("markexpr") != "not long":
        return None
    path = collection_path.relative_to(config.rootpath).as_posix() if config.rootpath in collection_path.parents else ""
    return True if path in SLOW_TESTS or path == "tests/fakes" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        parameters = _parameters_of(item)
        s3 = "s3" in parameters and not any(f"tests/{place}" in item.nodeid for place in WITH_S3)
        # the quickstart runs all stages there
        stage_on_ray = "on Ray" in parameters and not {"stages", "documents"}.isdisjoint(item.path.parts)
        # our fakes and plugins change seldom
        of_support = "fakes" in item.path.parts
        slow = not SLOW_TESTS.isdisjoint((item.nodeid, item.nodeid.partition("[")[0], item.nodeid.partition("::")[0]))
        if s3 or stage_on_ray or of_support or slow:
            item.add_marker(pytest.mark.long)
    # of the processes that share the tests none is left with a slow file at the end
    items.sort(key=_turn)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The scheduler of `--dist loadfile`, for which the files of a group are one."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class LoadFilesOrGroups(LoadFileScheduling):
        """After a crash of a worker, xdist 3.8 waits for ever: it assigns that worker's files again, also those
        of which no test is left, and a worker begins a test only when it is given another one, or the end."""

        @cached_property
        def group_of(self) -> dict[str, str]:
            groups = groups_of_files(config.rootpath)
            only_quick = config.getoption("markexpr") == "not long"
            return groups if only_quick else {file: name for file, name in groups.items() if name not in IMPORTS}

        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return self.group_of.get(file, file)

        def remove_node(self, node: Any) -> str | None:
            units = self.assigned_work.pop(node)
            pending = [(unit, nodeid) for unit in units.values() for nodeid, completed in unit.items() if not completed]
            if not pending:
                return None
            unit, crashed = pending[0]
            unit[crashed] = True  # it has failed
            self.workqueue.update({scope: unit for scope, unit in units.items() if not all(unit.values())})
            for other in self.assigned_work:
                self._reschedule(other)
            return crashed

        def _assign_work_unit(self, node: Any) -> None:
            if not self.workqueue:  # the processes before it have got all of the few tests there are
                return
            try:
                super()._assign_work_unit(node)
            except OSError:  # its process has crashed, which is reported next: then its files are assigned again
                return
            if self._pending_of(self.assigned_work[node]) < 2:
                self._reschedule(node)

    return LoadFilesOrGroups(config, log)


def groups_of_files(root: Path) -> dict[str, str]:
    """File of tests -> its group, for the files that have one."""
    groups = {}
    for file in root.glob("tests/**/test_*.py"):
        path, text = file.relative_to(root).as_posix(), file.read_text()
        for group, pattern in SHARED.items():
            if pattern.search(f"{path}\n{text}"):
                groups.setdefault(path, group)
    return groups


def _turn(item: pytest.Item) -> int:
    """When it is its turn. The quickstart is the longest, and Ray's workers have the lowest priority of the system."""
    if "tiny_quickstart" in getattr(item, "fixturenames", ()):
        return 0
    return 1 if SLOW_FOLDERS.intersection(item.path.parts) else 2


def _parameters_of(item: pytest.Item) -> list[object]:
    callspec = getattr(item, "callspec", None)
    return list(callspec.params.values()) if callspec else []
