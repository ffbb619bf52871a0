"""The pages of the documentation: the blocks they show, and a checkout of their own to do what they say in.

A page's blocks are done in order, in one folder that looks like the root of the repository:

    ```python   whose first line is "# some/file.py" is that file; any other is run, in one namespace a page
    ```bash     is run, and must end well
    ```console  is run line by line ("$ …"), and each line shown below must come, in order; "…" stands for anything

A comment before a block says otherwise: `<!-- not run: why -->`, or `<!-- long: why -->` for `make test-all` alone.
Blocks of other kinds (text, json) are only looked at.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from marin_resources.ray_tpu.cluster.local import local_cluster

ROOT = Path(__file__).parents[2]
_TOP = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
PAGES = [*map(ROOT.joinpath, _TOP), *sorted((ROOT / "docs").rglob("*.md"))]

FENCE = re.compile(
    r"^(?:<!-- (?P<mark>not run|long): [^>]+ -->\n+)?"
    r"^(?P<indent> *)```(?P<kind>\w*)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
FILE_LINE = re.compile(r"# (?P<path>[\w./-]+\.py)\n")
END_JOBS = "trap 'kill $(jobs -p) 2> /dev/null || true' ERR"
"""A block that fails ends the servers that it has started: its output is read until the last of them has closed it."""
PACKAGES = ("marin_assets", "marin_resources", "marin_sensors", "infra")
FILES = ("pyproject.toml", "uv.lock", "workspace.yaml", ".activate")


@dataclass(frozen=True)
class Block:
    kind: str
    text: str
    mark: str | None
    line: int

    @property
    def path(self) -> str | None:
        """The file that the block is, if it is one."""
        named = FILE_LINE.match(self.text) if self.kind == "python" else None
        return named["path"] if named else None


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start("kind")) + 1
        yield Block(match["kind"], textwrap.dedent(match["text"]), match["mark"], line)


class Checkout:
    """A copy of the packages where a reader would have the repository, with outputs and Dagster's home of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in PACKAGES:
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in FILES:
            shutil.copy(ROOT / name, folder)
        (folder / ".dagster").mkdir()
        shutil.copy(ROOT / ".dagster/dagster.yaml", folder / ".dagster")
        (folder / ".venv").symlink_to(sys.prefix)

    def save(self, block: Block) -> Path:
        """Put a block that is a file where it says."""
        assert block.path is not None
        path = self.folder / block.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text)
        return path

    def shell(self, command: str) -> subprocess.CompletedProcess[str]:
        """What bash says to a command, after `source .activate`."""
        inherited = {k: v for k, v in os.environ.items() if k not in ("MARIN_PREFIX", "DAGSTER_HOME", "PYTHONWARNINGS")}
        return subprocess.run(
            ["bash", "-c", f"source .activate\nset -eo pipefail\n{END_JOBS}\n{command}"],
            cwd=self.folder,
            env={**inherited, "PYTHONPATH": str(self.folder), "MARIN_STATE_DIR": str(self.folder / ".state")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1700,  # guards against a hang: a full quickstart beside two others on a slow machine
            check=False,
        )

    def end_cluster(self) -> None:
        """End the cluster that a page has left up."""
        local_cluster.down(state=self.folder / ".state")


def do_page(page: Path, checkout: Checkout, *, with_long: bool) -> None:
    """Do what the page says. Raises AssertionError with the line of the block that does not do what it shows."""
    module = ModuleType("page")
    sys.modules["page"] = module  # where dataclasses look up their own module
    try:
        _do_blocks(page, module, checkout, with_long=with_long)
    finally:
        checkout.end_cluster()


def _do_blocks(page: Path, module: ModuleType, checkout: Checkout, *, with_long: bool) -> None:
    for block in blocks(page):
        where = f"{page.relative_to(ROOT)}:{block.line}"
        if block.mark == "not run" or (block.mark == "long" and not with_long):
            continue
        if block.path is not None:
            checkout.save(block)
        elif block.kind == "python":
            with contextlib.chdir(checkout.folder):
                exec(compile(block.text, where, "exec", dont_inherit=True), vars(module))
        elif block.kind == "bash":
            done = checkout.shell(block.text)
            assert done.returncode == 0, f"{where} ended with {done.returncode}:\n{done.stdout}"
        elif block.kind == "console":
            _do_console(block.text, checkout, where)


def _do_console(text: str, checkout: Checkout, where: str) -> None:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        said = checkout.shell(command).stdout
        rest = said.splitlines()
        for line in filter(None, (line.rstrip() for line in shown.splitlines())):
            pattern = re.compile(".*".join(map(re.escape, line.split("…"))))
            place = next((i for i, got in enumerate(rest) if pattern.fullmatch(got.rstrip())), None)
            assert place is not None, f"{where}: {command!r} does not say {line!r}. It said:\n{said}"
            rest = rest[place + 1 :]
