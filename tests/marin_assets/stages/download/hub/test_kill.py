"""A download that is killed continues at the byte where it stopped."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import hub_downloads
import pytest
from dataset_hub import DatasetHub
from hub_downloads import FILES, NAME, download, files_of

from marin_assets.stages.download.web import transfer
from marin_resources.ray_tpu.shards.map_shards import ShardError

FIELDS = {"range_bytes": 100_000, "ranges_in_flight": 4}


def killed_in_the_middle(hub: DatasetHub, output: Path) -> int:
    """Kill -9 a download when half of each range in flight has arrived. Returns the bytes in its parts."""
    hub.gate = threading.Event()
    config = json.dumps({"output": str(output), **FIELDS})
    process = subprocess.Popen([sys.executable, hub_downloads.__file__, config])
    assert hub.half_sent.wait(60)
    parts = output / ".hub/parts"
    arrived, deadline_s = 0, time.monotonic() + 60
    while arrived < sum(hub.sent_bytes.values()) or hub.most_at_once < FIELDS["ranges_in_flight"]:
        assert time.monotonic() < deadline_s
        arrived = sum(part.stat().st_size for part in parts.glob("*/*"))
        arrived += sum(len(content) for content in files_of(output).values()) if output.exists() else 0
    process.kill()
    assert process.wait() == -9
    hub.dropped.append(hub.gate)
    hub.gate.set()
    hub.gate = None
    hub.sent_bytes.clear()
    return sum(part.stat().st_size for part in parts.glob("*/*"))


def test_a_killed_download_fetches_only_the_bytes_that_it_lacks(hub: DatasetHub, output: Path) -> None:
    hub.add(NAME, {"a.bin": FILES["data/a.bin"], "b.bin": FILES["data/b.bin"]})
    arrived = killed_in_the_middle(hub, output)
    assert arrived > 100_000
    assert files_of(output) == {}
    result = download(output, **FIELDS)
    assert files_of(output) == {"a.bin": FILES["data/a.bin"], "b.bin": FILES["data/b.bin"]}
    all_bytes = len(FILES["data/a.bin"]) + len(FILES["data/b.bin"])
    assert result["bytes_fetched"] == sum(hub.sent_bytes.values()) == all_bytes - arrived


def test_a_part_that_was_damaged_is_noticed_and_fetched_again(hub: DatasetHub, output: Path) -> None:
    hub.add(NAME, {"a.bin": FILES["data/a.bin"]})
    killed_in_the_middle(hub, output)
    part = next((output / ".hub/parts").glob("*/*"))
    part.write_bytes(b"x" * part.stat().st_size)
    assert download(output, **FIELDS)["retries_wrong_checksum"] == 1
    assert files_of(output) == {"a.bin": FILES["data/a.bin"]}


def test_a_part_that_is_too_long_starts_again(hub: DatasetHub, output: Path) -> None:
    hub.add(NAME, {"a.bin": FILES["data/a.bin"]})
    killed_in_the_middle(hub, output)
    next((output / ".hub/parts").glob("*/*")).write_bytes(b"x" * 200_000)
    download(output, **FIELDS)
    assert files_of(output) == {"a.bin": FILES["data/a.bin"]}


def test_a_part_that_another_process_writes_is_refused(hub: DatasetHub, output: Path) -> None:
    hub.add(NAME, {"a.bin": FILES["data/a.bin"]})
    hub.gate = threading.Event()
    process = subprocess.Popen(
        [sys.executable, hub_downloads.__file__, json.dumps({"output": str(output), **FIELDS})],
        stdout=subprocess.DEVNULL,
    )
    assert hub.half_sent.wait(60)
    with pytest.raises(ShardError, match=r"Another process of this machine fetches 'a\.bin' into"):
        download(output, **FIELDS)
    hub.gate.set()
    assert process.wait() == 0


def test_parts_of_an_output_in_a_bucket_are_in_the_temporary_folder(
    hub: DatasetHub, gcs_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer.tempfile, "gettempdir", lambda: str(tmp_path))
    hub.add(NAME, {"a.bin": FILES["data/a.bin"]})
    hub.fault("a.bin", "cut", *["server_error"] * 8)
    with pytest.raises(ShardError, match="failed 8 times"):
        download(f"{gcs_prefix}/raw", range_bytes=10**6)
    arrived = sum(part.stat().st_size for part in tmp_path.glob("marin-hub-*/*/*/*"))
    assert arrived == hub.sent_bytes["a.bin"] > 100_000
    download(f"{gcs_prefix}/raw", range_bytes=10**6)
    assert hub.sent_bytes["a.bin"] == len(FILES["data/a.bin"])


@pytest.mark.long
@pytest.mark.timeout(900)
def test_twenty_kills_among_faults_cost_what_was_in_flight(hub: DatasetHub, output: Path) -> None:
    draw = random.Random(11)
    files = {f"data/{i:03}.bin": draw.randbytes(draw.randrange(1, 60_000)) for i in range(200)}
    all_bytes, range_bytes = sum(map(len, files.values())), 20_000
    hub.add(NAME, files)
    for name in files:
        hub.fault(name, *draw.sample(["cut", "hang_up", "server_error", "wrong_range", "expire"], draw.randrange(3)))
    config = json.dumps(
        {"output": str(output), "range_bytes": range_bytes, "ranges_in_flight": 4, "max_shard_files": 30}
    )
    kills = sorted(draw.randrange(all_bytes) for _ in range(20))
    for kill_at in kills:
        complete = set(files_of(output)) if output.exists() else set()
        before = len(hub.requests)
        process = subprocess.Popen([sys.executable, hub_downloads.__file__, config], stdout=subprocess.DEVNULL)
        while sum(hub.sent_bytes.values()) < kill_at and process.poll() is None:
            time.sleep(0.001)
        process.kill()
        process.wait()
        fetched = {path.partition("?")[0] for _, path, _ in hub.requests[before:]}
        assert not [path for path in fetched if any(path.endswith(f"/{name}") for name in complete)]
    download(output, range_bytes=range_bytes)
    assert files_of(output) == files
    assert sum(hub.sent_bytes.values()) <= 1.05 * all_bytes + len(kills) * 4 * range_bytes
