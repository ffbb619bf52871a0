"""Run the quickstart as a user does, and hold what one run made against what another has made."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from record_fields import fields_of_record
from running import ROOT

from marin_assets import Step
from marin_assets.step.graph import build_graph
from marin_resources.storage.files import sizes_below
from marin_resources.storage.manifest.manifest import Entry, Manifest, read_manifest
from marin_resources.storage.output.status import Status, read_status
from marin_resources.storage.paths import join

SCRIPT = """
from marin_assets import executor_main
from marin_assets.experiments.quickstart import steps
executor_main(steps({scale!r}))
"""
CONTROL = {".executor_status", ".executor_status.lock", ".executor_info", ".marin", ".stats.json"}
"""Hidden files and folders of an output; Marin's caches have the last one."""
BY_THE_CLOCK = ("tokens_per_second", "loading_share")
TRAINED, CHANCE = "checkpoints/", "/d/"
"""Steps that train; in their checkpoints, the folders of files to which TensorStore gives names of chance."""


@dataclass(frozen=True)
class FullRun:
    """The README's first command, in an environment of its own."""

    prefix: Path
    env: dict[str, str]
    stdout: str
    stderr: str


def run_full(env: Mapping[str, str]) -> tuple[str, str]:
    command = [sys.executable, "-m", "marin_assets.experiments.quickstart"]
    ended = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout, ended.stderr


def run_in(prefix: str, scale: str, folder: Path, env: Mapping[str, str] | None = None) -> str:
    """The quickstart as a user runs it; what it says."""
    script = folder / f"run_{scale}.py"
    script.write_text(SCRIPT.format(scale=scale))
    variables = {**os.environ, "MARIN_PREFIX": prefix, "PYTHONPATH": str(ROOT), **(env or {})}
    done = subprocess.run([sys.executable, str(script)], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    return done.stderr


def paths_below(prefix: str, made: list[Step]) -> dict[str, str]:
    return {node.name: join(prefix, node.version.path) for node in build_graph(made)}


def manifest_of(path: str) -> Manifest:
    manifest = read_manifest(path)
    assert manifest is not None
    return manifest


def entries_of(path: str) -> dict[str, Entry]:
    return {entry.name: entry for entry in manifest_of(path).entries}


def require_equal(on_disk: dict[str, str], there: dict[str, str]) -> None:
    """Whatever two runs on one disk have in common is the same elsewhere."""
    for name, path in on_disk.items():
        if name.startswith(TRAINED):
            require_same_model(entries_of(path), entries_of(there[name]))
        else:
            assert manifest_of(there[name]).digest == manifest_of(path).digest, name


def require_same_model(here: dict[str, Entry], there: dict[str, Entry]) -> None:
    """The same checkpoints, and the same bytes of the exported model."""
    assert {file for file in here if CHANCE not in file} == {file for file in there if CHANCE not in file}
    exported = ["plots/loss.png", *(file for file in here if file.startswith("hf/"))]
    assert [here[file] for file in exported] == [there[file] for file in exported]


def require_complete(paths: dict[str, str]) -> None:
    """Every output is done, by its manifest, and has no file but those of the manifest and known control files."""
    for path in paths.values():
        assert read_status(path) is Status.SUCCESS
        sizes = sizes_below(path)
        hidden = {part for name in sizes for part in name.split("/") if part.startswith(".")}
        assert hidden <= CONTROL
        data = {name: size for name, size in sizes.items() if not any(part.startswith(".") for part in name.split("/"))}
        assert data == {name: entry.size for name, entry in entries_of(path).items()}


def results_of(paths: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Of each step, what it counted, without what the clock has to do with."""
    found = {}
    for name, path in paths.items():
        record = fields_of_record(path)
        assert record is not None
        assert record["manifest"] == manifest_of(path).summary()
        found[name] = {key: value for key, value in record["result"].items() if key not in BY_THE_CLOCK}
    return found
