"""The running Python's own documentation as HTML pages: a corpus that every machine has, without a network.

In:  nothing but the interpreter.
Out: shards of documents {id, text: <the HTML page>, source, metadata}, where source is "pydoc" for a module's page
     (metadata: module, kind) and "topics" for a page of the language reference (metadata: topic, kind).

Pages are rendered by `pydoc_render.py` in an interpreter without environment, site-packages or a script folder: the
same Python gives the same bytes everywhere, and nothing of the machine is in them.
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
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.paths import join

SKIPPED = frozenset({"antigravity", "this", "idlelib", "turtledemo", "test", "tests", "lib2to3", "__main__"})
"""Modules that open a browser, print a poem, are programs, or hold tests; packages' submodules of these names too."""

RENDERER = Path(__file__).with_name("pydoc_render.py")

log = logging.getLogger(__name__)


class PythonVersionError(ValueError):
    """The running Python is not the one whose documentation was asked for."""


class RenderError(RuntimeError):
    """The rendering interpreter died: one sentence with the end of its stderr."""


@dataclass(frozen=True, kw_only=True)
class PydocConfig:
    output_path: str = THIS_OUTPUT_PATH
    shards: int = versioned(8)
    max_modules: int | None = versioned(None)
    """At most this many modules, spread evenly over the alphabet; None for all. Topics are always all there."""
    python_version: str = field(default_factory=lambda: versioned(platform.python_version()))
    """The Python that is documented ("3.11.7"): another interpreter is another corpus."""


@dataclass(frozen=True, kw_only=True)
class PydocShard:
    path: str
    modules: list[str]
    topics: list[str]
    python_version: str

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.path,)


def render_pydoc(config: PydocConfig) -> dict[str, int | float]:
    """Render the running Python's own documentation as HTML pages.

    Returns pages (modules + topics), bytes of HTML, modules_failed (another platform's, or a library is missing).
    """
    from pydoc_data.topics import topics

    if config.shards < 1:
        raise ValueError(f"shards is {config.shards!r}, expected at least 1. Pass versioned(8).")
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


def check_python_version(expected: str) -> None:
    running = platform.python_version()
    if running != expected:
        raise PythonVersionError(
            f"The documentation of Python {expected!r} was asked for and Python {running!r} is running. "
            "Run the step with that interpreter, or leave python_version to its default."
        )


def module_names() -> Iterator[str]:
    """Every module of the standard library, with the modules of its packages; sorted, nothing is imported."""
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
    """At most `limit` names, evenly spaced."""
    if limit is None or limit >= len(names):
        return names
    return [names[i * len(names) // limit] for i in range(limit)]


def render_shard(shard: PydocShard) -> dict[str, int]:
    check_python_version(shard.python_version)
    rows = [json.loads(line) for line in run_renderer(shard.modules, shard.topics).splitlines()]
    pages = [page_document(row) for row in rows if "html" in row]
    failed = [row for row in rows if "failed" in row]
    for row in failed:
        log.info("no page for the module %s: %s", row["name"], row["failed"])
    write_documents(shard.path, pages, replace=False)
    return {
        "pages": len(pages),
        "modules": sum(page.source == "pydoc" for page in pages),
        "topics": sum(page.source == "topics" for page in pages),
        "bytes": sum(len(page.text.encode()) for page in pages),
        "modules_failed": len(failed),
    }


def run_renderer(modules: list[str], topics: list[str]) -> str:
    """The renderer's output lines. It ends when this process does: it watches a pipe whose other end is here."""
    # Neither site-packages (-s -S) nor the script's folder (-P) stands in for a module; -I would ignore PYTHONHASHSEED.
    program = [sys.executable, "-s", "-S", "-P", "-X", "utf8", "-W", "ignore", str(RENDERER)]
    library_path = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}  # for libpython
    read_end, write_end = os.pipe()
    try:
        done = subprocess.run(
            [*program, str(read_end)],
            input=json.dumps({"modules": modules, "topics": topics}).encode(),
            capture_output=True,
            env={"PYTHONHASHSEED": "0", **library_path},  # sets in one order
            cwd="/",
            pass_fds=(read_end,),
            check=False,
        )
    finally:
        os.close(read_end)
        os.close(write_end)
    if done.returncode:
        end = done.stderr.decode(errors="replace")[-500:]
        raise RenderError(f"The interpreter that renders pydoc pages ended with code {done.returncode}: {end!r}.")
    return done.stdout.decode()


def page_document(row: dict[str, str]) -> Document:
    kind = {"pydoc": "module", "topics": "topic"}[row["source"]]
    metadata = {kind: row["name"], "kind": kind}
    return Document(id=f"{row['source']}/{row['name']}", text=row["html"], source=row["source"], metadata=metadata)
