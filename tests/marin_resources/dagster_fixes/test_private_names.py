"""Private names of Dagster are imported by `marin_resources/dagster_fixes` alone, and they are few."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "marin_resources" / "dagster_fixes"
PRODUCT = [
    file for package in ("marin_assets", "marin_resources", "marin_sensors") for file in ROOT.glob(f"{package}/**/*.py")
]
OWN = {
    "__init__.py",
    "compute_logs/__init__.py",
    "compute_logs/objects.py",
    "executor/__init__.py",
    "executor/interruption.py",
    "executor/step_threads.py",
    "output_pages.py",
    "retry_policy.py",
}
"""Files that name nothing of Dagster: parts of a repair."""
MOST_NAMES, MOST_FILES = 50, 15


def is_private(module: str) -> bool:
    """Whether a release may change a module: `dagster._core`, `dagster_postgres.utils`."""
    package, *rest = module.split(".")
    return package.startswith("dagster") and (
        package == "dagster_shared" or (any(rest) and (package != "dagster" or rest[0].startswith("_")))
    )


def private_names(file: Path) -> Iterator[str]:
    """The private names that a file imports, also within functions and for types."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for name in node.names:
                if is_private(f"{node.module}.{name.name}") and (
                    is_private(node.module) or name.name.startswith("_") or name.name.islower()
                ):
                    yield f"{node.module}.{name.name}"
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if is_private(name.name))


def test_no_other_room_imports_a_private_name() -> None:
    others = [file for file in PRODUCT if PACKAGE not in file.parents]
    assert {str(file.relative_to(ROOT)): names for file in others if (names := list(private_names(file)))} == {}


def test_the_private_names_are_few() -> None:
    names = {str(file.relative_to(PACKAGE)): list(private_names(file)) for file in PACKAGE.glob("**/*.py")}
    assert sum(map(len, names.values())) <= MOST_NAMES, names
    assert sum(map(bool, names.values())) <= MOST_FILES, names


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("from dagster._core.events import EngineEventData", ["dagster._core.events.EngineEventData"]),
        ("from dagster import _check", ["dagster._check"]),
        ("from dagster_postgres.utils import create_pg_engine", ["dagster_postgres.utils.create_pg_engine"]),
        ("from dagster_webserver import cli", ["dagster_webserver.cli"]),
        ("import dagster._core.events as e", ["dagster._core.events"]),
        ("def f():\n    from dagster._grpc import server_watcher", ["dagster._grpc.server_watcher"]),
        ("import dagster as dg", []),
        ("from dagster import asset, DagsterInstance", []),
        ("from dagster_k8s import K8sRunLauncher", []),
    ],
)
def test_a_private_import_is_found(line: str, expected: list[str], tmp_path: Path) -> None:
    file = tmp_path / "example.py"
    file.write_text(line)
    assert list(private_names(file)) == expected


@pytest.mark.parametrize("file", [str(f.relative_to(PACKAGE)) for f in PACKAGE.glob("**/*.py")])
def test_each_repair_names_its_version_and_its_issue(file: str) -> None:
    if file in OWN:
        return
    text = ast.get_docstring(ast.parse((PACKAGE / file).read_text())) or ""
    assert re.search(r"1\.13\.\d+|0\.29\.\d+", text), "the version of Dagster"
    assert re.search(r"dagster-io/dagster#\d+|[Nn]o issue", text), "its issue, or why there is none"
