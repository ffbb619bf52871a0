"""A list of files of a server is copied by a step in Dagster: a damaged file fails it, and what is complete is kept."""

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
from crawl_server import crawl_server
from dagster_homes import new_home
from record_fields import fields_of_record

SCRIPT = """
from marin_assets import executor_main
from marin_assets.defaults import StoreAccess, default_download_listed

SERVER = {server!r}
crawl = default_download_listed(
    "crawl",
    SERVER,
    list_path=SERVER + "paths.gz",
    include=["data/*.bin"],
    checksum_file=SERVER + "sha1sums.txt",
    access=StoreAccess(max_requests_per_s=50.0),
)

if __name__ == "__main__":
    executor_main([crawl])
"""
FILES = {"data/a.bin": b"a" * 300_000, "data/b c.bin": b"b" * 1000}


def run(script: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "marin_assets.cli", "run", script.name]
    return subprocess.run(
        command, cwd=script.parent, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_damaged_file_fails_the_step_and_the_next_run_continues(tmp_path: Path) -> None:
    prefix, home = tmp_path / "outputs", new_home(tmp_path / "home")
    environment = {"MARIN_PREFIX": str(prefix), "DAGSTER_HOME": str(home)}
    with crawl_server() as server:
        (tmp_path / "crawl.py").write_text(SCRIPT.format(server=server.url))
        sums = [f"{hashlib.sha1(data).hexdigest()} *{name.rpartition('/')[2]}\n" for name, data in FILES.items()]
        server.files = {**FILES, "paths.gz": gzip.compress("\n".join([*FILES, "data/", "other.txt"]).encode())}
        server.files |= {"sha1sums.txt": "".join(sums).encode(), "data/b c.bin": b"damaged"}

        failed = run(tmp_path / "crawl.py", environment)
        assert failed.returncode == 1
        assert "data/b c.bin' has the SHA-1 '" in failed.stderr
        assert (
            "sha1sums.txt', twice. Its parts are removed; correct the expected checksum or the source" in failed.stderr
        )

        # shards run at the same time, so the damaged one may end the run before the other is complete
        is_complete = any(prefix.glob("raw/crawl-*/.checksums/data/a.bin.json"))
        server.files |= FILES
        server.requests.clear()
        done = run(tmp_path / "crawl.py", environment)
        assert done.returncode == 0, done.stderr
        is_fetched = any(method == "GET" and path == "data/a.bin" for method, path, _ in server.requests)
        assert is_fetched is not is_complete

    (output,) = prefix.glob("raw/crawl-*")
    assert {name: (output / name).read_bytes() for name in FILES} == FILES
    record = fields_of_record(str(output))
    assert record is not None
    assert record["result"]["listed"] == 3
    assert record["result"]["left_out_folders"] == 1
    assert record["result"]["unchecked"] == 0
    with dg.DagsterInstance.from_config(str(home)) as instance:
        event = instance.get_latest_materialization_event(dg.AssetKey(["crawl", "raw"]))
    assert event is not None
