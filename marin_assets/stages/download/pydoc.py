"""Render the documentation of the running Python as HTML pages: a corpus on every machine, without a network.

In:  the interpreter alone.
Out: shards of documents {id, text: <the HTML page>, source, metadata}, where source is "pydoc" for a module's page
     (metadata: module, kind) and "topics" for a page of the language reference (metadata: topic, kind).

`pydoc_render.py` renders the pages in an interpreter without environment, site-packages or a script folder: the same
Python produces the same bytes everywhere, and they contain nothing of the machine.
"""

from __future__ import annotations

import json
import logging
import os
import pkgutil
import platform
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from marin_assets.documents import Document, shard_name, write_documents
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.files import StoredFile
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

KINDS = ("html",)

SKIPPED = frozenset({"antigravity", "this", "idlelib", "turtledemo", "test", "tests", "lib2to3", "__main__"})
"""Modules that open a browser, print a poem, are programs, or hold tests. Submodules of these names are skipped too."""

RENDERER = Path(__file__).with_name("pydoc_render.py")

log = logging.getLogger(__name__)


class PythonVersionError(MarinError, ValueError):
    """The running Python is not the one that the config requests."""


class RenderError(MarinError):
    """The rendering interpreter failed: one sentence with the end of its stderr."""


@dataclass(frozen=True, kw_only=True)
class PydocConfig:
    output_path: str = THIS_OUTPUT_PATH
    shards: int = versioned(8)
    max_modules: int | None = versioned(None)
    """At most this many modules, spread evenly over the alphabet; None for all. All topics are always rendered."""
    python_version: str = field(default_factory=lambda: versioned(platform.python_version()))
    """The documented Python ("3.11.7"): another interpreter produces another corpus."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


@dataclass(frozen=True, kw_only=True)
class PydocShard:
    """The pages of one shard."""

    path: str
    modules: list[str]
    topics: list[str]
    python_version: str
    inputs: tuple[StoredFile, ...] = ()
    """None: the modules are those of the Python of this version."""

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.path,)


def render_pydoc(config: PydocConfig) -> dict[str, int | float]:
    """Render the documentation of the running Python as HTML pages.

    Returns pages, modules, topics (pages = modules + topics), bytes of HTML, and modules_failed: modules of another
    platform, or with a missing library. Raises PythonVersionError and RenderError.
    """
    from pydoc_data.topics import topics

    _check(config)
    check_python_version(config.python_version)
    modules, topic_names = choose(list(module_names()), config.max_modules), sorted(topics)
    shards = [
        PydocShard(
            path=join(config.output_path, shard_name(i, config.shards)),
            modules=modules[i :: config.shards],
            topics=topic_names[i :: config.shards],
            python_version=config.python_version,
        )
        for i in range(config.shards)
    ]
    return map_shards(render_shard, shards, output_path=config.output_path)


def _check(config: PydocConfig) -> None:
    if config.shards < 1:
        raise RenderError(f"shards is {config.shards!r}, expected at least 1. Pass versioned(8).")


def check_python_version(expected: str) -> None:
    """Raise PythonVersionError if another Python is running."""
    running = platform.python_version()
    if running != expected:
        raise PythonVersionError(
            f"The config requests the documentation of Python {expected!r}, but Python {running!r} is running. "
            "Run the step with that interpreter, or leave python_version at its default."
        )


def module_names() -> Iterator[str]:
    """Yield every module of the standard library and the modules of its packages, sorted, without an import."""
    for name in sorted(sys.stdlib_module_names - SKIPPED):
        yield name
        yield from submodule_names(name, os.path.join(sysconfig.get_path("stdlib"), name))


def submodule_names(package: str, folder: str) -> Iterator[str]:
    for module in pkgutil.iter_modules([folder]):
        if module.name not in SKIPPED:
            yield f"{package}.{module.name}"
            if module.ispkg:
                yield from submodule_names(f"{package}.{module.name}", os.path.join(folder, module.name))


def choose(names: list[str], limit: int | None) -> list[str]:
    """Return at most `limit` names, evenly spaced."""
    if limit is None or limit >= len(names):
        return names
    return [names[i * len(names) // limit] for i in range(limit)]


def render_shard(shard: PydocShard) -> dict[str, int]:
    """Write one shard of pages. Returns pages, modules, topics, bytes and modules_failed."""
    check_python_version(shard.python_version)
    rows = [json.loads(line) for line in run_renderer(shard.modules, shard.topics).splitlines()]
    pages = [page_document(row) for row in rows if "html" in row]
    failed = [row for row in rows if "failed" in row]
    for row in failed:
        log.info("module %s could not be rendered: %s", row["name"], row["failed"])
    write_documents(shard.path, pages, replace=False)
    return {
        "pages": len(pages),
        "modules": sum(page.source == "pydoc" for page in pages),
        "topics": sum(page.source == "topics" for page in pages),
        "bytes": sum(len(page.text.encode()) for page in pages),
        "modules_failed": len(failed),
    }


def run_renderer(modules: list[str], topics: list[str]) -> str:
    """Return the renderer's output lines. It exits with this process, which holds the other end of its pipe."""
    # No module may come from site-packages (-s -S) or the script's folder (-P). -I would also ignore PYTHONHASHSEED.
    program = [sys.executable, "-s", "-S", "-P", "-X", "utf8", "-W", "ignore", str(RENDERER)]
    library_path = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}  # for libpython
    read_end, write_end = os.pipe()
    try:
        done = subprocess.run(
            [*program, str(read_end)],
            input=json.dumps({"modules": modules, "topics": topics}).encode(),
            capture_output=True,
            env={"PYTHONHASHSEED": "0", **library_path},  # a fixed order of sets
            cwd="/",
            pass_fds=(read_end,),
            check=False,
        )
    finally:
        os.close(read_end)
        os.close(write_end)
    if done.returncode:
        end = done.stderr.decode(errors="replace")[-500:]
        raise RenderError(f"The interpreter that renders pydoc pages exited with code {done.returncode}: {end!r}.")
    return done.stdout.decode()


def page_document(row: dict[str, str]) -> Document:
    """Return the document of one rendered page."""
    kind = {"pydoc": "module", "topics": "topic"}[row["source"]]
    metadata = {kind: row["name"], "kind": kind}
    return Document(id=f"{row['source']}/{row['name']}", text=row["html"], source=row["source"], metadata=metadata)
