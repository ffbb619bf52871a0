"""The documentation of the running Python is the same bytes on every machine, with nothing of the machine in it."""

from __future__ import annotations

import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from pydoc_data.topics import topics

import psutil
import pytest

from marin_assets.documents import Document, list_shards, read_documents
from marin_assets.stages.download import pydoc, pydoc_render
from marin_assets.step.values import unwrap_versioned_value, versioned

REPOSITORY = Path(__file__).parents[4]
Twice = tuple[Path, Path, list[dict[str, int]]]
SECRET = "hunter2-planted-in-the-environment"
PROGRAM = """
import json, sys
from marin_assets.stages.download.pydoc import PydocConfig, render_pydoc
from marin_assets.step.values import unwrap_versioned_value
fields = json.loads(sys.argv[1])
print(json.dumps(render_pydoc(unwrap_versioned_value(PydocConfig(**fields)))))
"""


def config(output: Path, **fields: object) -> pydoc.PydocConfig:
    return unwrap_versioned_value(pydoc.PydocConfig(output_path=str(output), **fields))  # type: ignore[arg-type]


def pages_below(output: Path) -> dict[str, Document]:
    return {page.id: page for shard in list_shards(str(output)) for page in read_documents(shard)}


def start_rendering(
    output: Path, cwd: Path, *, shards: int = 8, max_modules: int | None = None, **env: str
) -> subprocess.Popen[bytes]:
    cwd.mkdir()
    for name in ("queue.py", "antigravity.py", "_abc.py", "sitecustomize.py"):
        (cwd / name).write_text(f"{SECRET!r}\n")  # no file here may replace a module of the standard library
    env = {"PYTHONPATH": str(REPOSITORY), "MARIN_TEST_SECRET": SECRET, "HOME": str(cwd), **env}
    fields = {"output_path": str(output), "shards": shards, "max_modules": max_modules}
    program = [sys.executable, "-P", "-c", PROGRAM, json.dumps(fields)]
    return subprocess.Popen(program, cwd=cwd, env=env, stdout=subprocess.PIPE)


@pytest.fixture(
    scope="module",
    params=[pytest.param(20, marks=pytest.mark.long), pytest.param(None, marks=pytest.mark.long)],
    ids=["20 modules", "all"],
)
def twice(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Twice:
    """Render the corpus twice, concurrently, in two folders, environments and hash seeds."""
    tmp, modules = tmp_path_factory.mktemp("pydoc"), request.param
    shards = 2 if modules else 8
    first = {"PYTHONHASHSEED": "1", "COLUMNS": "40", "TZ": "Asia/Tokyo", "LANG": "C"}
    second = {"PYTHONHASHSEED": "2", "COLUMNS": "200", "PYTHONDOCS": "/docs", "LANG": "C.UTF-8"}
    running = [
        start_rendering(tmp / "a", tmp / "cwd-a", shards=shards, max_modules=modules, **first),
        start_rendering(tmp / "b", tmp / "cwd-b", shards=shards, max_modules=modules, **second),
    ]
    results = [json.loads(process.communicate()[0]) for process in running]
    return tmp / "a", tmp / "b", results


def test_the_same_python_gives_the_same_bytes_whatever_environment_folder_and_hash_seed(twice: Twice) -> None:
    a, b, results = twice
    assert results[0] == results[1]
    assert [Path(shard).name for shard in list_shards(str(a))] == [Path(shard).name for shard in list_shards(str(b))]
    for shard in list_shards(str(a)):
        assert Path(shard).read_bytes() == (b / Path(shard).name).read_bytes()


def test_counts_add_up(twice: Twice) -> None:
    a, _, [result, _] = twice
    pages = pages_below(a)
    assert result["pages"] == len(pages) == result["modules"] + result["topics"]
    assert result["bytes"] == sum(len(page.text.encode()) for page in pages.values())
    assert result["topics"] == sum(page.source == "topics" for page in pages.values()) > 50
    assert pages["topics/assert"].metadata == {"topic": "assert", "kind": "topic"}
    for id, page in pages.items():
        if page.source == "pydoc":
            assert page.metadata == {"module": id.removeprefix("pydoc/"), "kind": "module"}


@pytest.mark.long
@pytest.mark.parametrize("twice", [None], indirect=True, ids=["all"])
def test_the_corpus_has_at_least_500_pages(twice: Twice) -> None:
    pages = pages_below(twice[0])
    assert len(pages) >= 500
    assert {"pydoc/heapq", "pydoc/xml.etree.ElementTree", "topics/assert"} <= set(pages)


def test_nothing_of_the_machine_is_in_the_pages(twice: Twice) -> None:
    a, _, _ = twice
    places = {
        sys.prefix,
        sys.base_prefix,
        sys.executable,
        str(Path.home()),
        os.getcwd(),
        str(a.parent),
        str(REPOSITORY),
    }
    planted = {SECRET, "MARIN_TEST_SECRET", "environ({"}
    host = {platform.node()} if len(platform.node()) > 10 else set()  # "vm" and "localhost" are words of the text
    for page in pages_below(a).values():
        for text in {*places - {"/usr"}, *planted, *host}:
            assert text not in page.text, (page.id, text)
        assert not re.search(r"\bat( |&nbsp;)0x[0-9a-f]{4,}", page.text), page.id


def test_an_address_is_left_out_of_a_topic_as_it_is_of_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(topics, "try", "  (<class 'E'>, <traceback object at 0x10efad080>)")  # as in CPython 3.11.2
    page = pydoc_render.topic_page("try")
    assert re.search(r"object( |&nbsp;)at( |&nbsp;)0x\.\.\.&gt;", page)
    assert "0x10efad080" not in page


def test_only_modules_of_the_standard_library_are_documented(twice: Twice) -> None:
    a, _, _ = twice
    modules = {page.metadata["module"] for page in pages_below(a).values() if page.source == "pydoc"}
    assert {module.partition(".")[0] for module in modules} <= sys.stdlib_module_names
    parts = {part for module in modules for part in module.split(".")}
    assert not parts & {
        "site-packages",
        "pip",
        "numpy",
        "antigravity",
        "this",
        "idlelib",
        "test",
        "lib2to3",
        "__main__",
    }


def test_a_default_value_that_is_not_a_literal_is_shown_as_a_name_or_dots(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in pydoc.run_renderer(["cgi", "sched", "platform", "textwrap"], []).splitlines()]
    cgi, sched, system, textwrap = (row["html"] for row in rows)
    assert "(environ=...)" in cgi
    assert "timefunc=monotonic, delayfunc=sleep" in sched
    assert "(executable=..., bits='', linkage='')" in system
    assert "placeholder=' [...]'" in textwrap


def test_a_tiny_corpus_takes_modules_from_all_over_the_alphabet(tmp_path: Path) -> None:
    result = pydoc.render_pydoc(config(tmp_path, shards=2, max_modules=12))
    assert result["modules"] + result["modules_failed"] == 12
    modules = sorted(page.metadata["module"] for page in pages_below(tmp_path).values() if page.source == "pydoc")
    assert modules[0][0] == "_"
    assert modules[-1][0] > "s"


def test_another_python_than_the_requested_one_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(pydoc.PythonVersionError, match=r"Python '3\.0\.1', but Python '3\."):
        pydoc.render_pydoc(config(tmp_path, python_version="3.0.1"))
    assert not list(tmp_path.iterdir())


def test_the_version_of_python_is_part_of_the_recipe() -> None:
    assert pydoc.PydocConfig().python_version == versioned(platform.python_version())


def test_the_rendering_process_exits_with_a_worker_that_is_killed(tmp_path: Path) -> None:
    worker = start_rendering(tmp_path / "out", tmp_path / "cwd", shards=1)  # it takes 10 s unless it is stopped
    renderer = None
    while renderer is None:
        assert worker.poll() is None
        renderer = next(iter(psutil.Process(worker.pid).children()), None)
        time.sleep(0.01)
    worker.send_signal(signal.SIGKILL)
    worker.communicate()
    _, alive = psutil.wait_procs([renderer], timeout=3)
    assert not alive


def test_the_renderer_exits_when_its_parents_pipe_closes_even_while_it_waits() -> None:
    read_end, write_end = os.pipe()
    program = [sys.executable, "-s", "-S", "-P", str(pydoc.RENDERER), str(read_end)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, pass_fds=(read_end,)) as renderer:
        os.close(read_end)
        time.sleep(0.3)
        assert renderer.poll() is None
        os.close(write_end)
        assert renderer.wait(timeout=3) == 1
