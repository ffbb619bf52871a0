"""`marin page`: the page of an experiment, a script, or a record of an experiment; and what cannot be one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from location import Location
from one_sentence import one_sentence

from marin_assets.assets.runs.experiment_record import write_experiment
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join

Marin = Callable[..., tuple[int, str, str]]
on_disk = pytest.mark.parametrize("disk_or_gcs_prefix", ["disk"], indirect=True)


def test_an_experiment_is_one_page_whose_path_is_printed(made: Location, marin: Marin, tmp_path: Path) -> None:
    code, out, _ = marin("page", made.name, "--output", str(tmp_path / "new/pages"))
    file = tmp_path / f"new/pages/{made.name}.html"
    assert (code, out) == (0, f"{file}\n")
    html = file.read_text()
    assert "4 steps: 3 complete, 1 not computed" in html
    assert (made.store.prefix in html, str(tmp_path) in html) == (False, False)
    code, _, _ = marin("page", made.name, "tokens", "--output", str(tmp_path))
    assert "1 step: 1 complete" in (tmp_path / f"{made.name}.html").read_text()


@on_disk
def test_the_page_is_in_the_current_folder_by_default(
    made: Location, marin: Marin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert marin("page", made.name)[:2] == (0, f"./{made.name}.html\n")


def test_a_record_of_our_own_or_of_marins_is_a_page(made: Location, marin: Marin, tmp_path: Path) -> None:
    record = write_experiment("mine", made.graph, made.store, None)
    code, out, _ = marin("page", record, "--output", str(tmp_path))
    assert (code, "4 steps: 3 complete, 1 not computed" in Path(out.strip()).read_text()) == (0, True)
    path = join(made.store.prefix, "hello/data-0a1b2c")
    version = {"name": "hello/data", "config": {"n": 1}, "dependencies": []}
    info = {"name": "hello/data", "fn_name": "hello:make", "config": {}, "version": version, "git_commit": "ab" * 20}
    write_bytes(join(path, ".executor_info"), json.dumps(info).encode())
    write_bytes(join(path, ".executor_status"), b"SUCCESS")
    steps = [{"name": "hello/data", "output_path": path, "fn_name": "hello:make", "version": version}]
    steps += [{"name": "hello/last", "output_path": f"{path}x", "dependencies": [path]}]
    marins = {"worker_id": "gpu-3-77", "git_commit": "ab" * 20, "user": "percy", "prefix": made.store.prefix}
    file = join(made.store.prefix, "experiments/hello-123456.json")
    write_bytes(file, json.dumps({**marins, "description": None, "steps": steps}).encode())
    code, out, _ = marin("page", file, "--output", str(tmp_path))
    html = (tmp_path / "hello-123456.html").read_text()
    assert (code, out) == (0, f"{tmp_path}/hello-123456.html\n")
    assert "2 steps: 1 complete, 1 not computed" in html
    assert "commit abababababab" in html
    assert 'reads <a href="#step-hello/data">' in html
    assert [text for text in ("percy", "gpu-3", made.store.prefix) if text in html] == []
    code, _, err = marin("page", file, "nothing", "--output", str(tmp_path))
    assert (code, "'nothing'" in one_sentence(ValueError(err.strip()))) == (2, True)


@on_disk
def test_what_is_no_experiment_or_no_folder_is_one_sentence(made: Location, marin: Marin, tmp_path: Path) -> None:
    def sentence(*words: str, code: int = 2) -> str:
        got, _, err = marin("page", *words)
        assert got == code
        return one_sentence(ValueError(err.strip()))

    assert f"expected {made.name!r}" in sentence(f"{made.name}x")
    assert "got no experiment" in sentence()
    assert "none.py" in sentence("none.py")
    assert "'none.json'" in sentence("none.json")
    torn = tmp_path / "torn.json"
    torn.write_text('{"steps": [')
    assert "torn.json" in sentence(str(torn))
    torn.write_text('{"steps": 3}')
    assert "torn.json" in sentence(str(torn))
    place = f"{made.store.prefix}/x-123456"
    circle = {"name": "x", "output_path": place, "dependencies": [place]}
    torn.write_text(json.dumps({"prefix": made.store.prefix, "steps": [circle]}))
    assert "'x' reads 'x'. Expected steps without a circle." in sentence(str(torn))
    file = tmp_path / "a-file"
    file.touch()
    assert "which is a file" in sentence(made.name, "--output", str(file))
    assert "cannot be written" in sentence(made.name, "--output", str(file / "below"), code=1)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    folder = closed if os.getuid() else Path("/proc/self")  # where not even the superuser may write
    assert "cannot be written" in sentence(made.name, "--output", str(folder), code=1)
    assert list(closed.iterdir()) == []
