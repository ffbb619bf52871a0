"""A copy that is killed continues at the byte where it stopped, of every store; of another state it starts afresh."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
import slow_download
from crawl_server import CrawlServer
from slow_download import download, parts_of

from marin_resources.ray_tpu.shards.map_shards import ShardError
from marin_resources.storage.files import write_bytes

CONTENT = random.Random(5).randbytes(1_200_000)
ACCESS = {"range_bytes": 200_000, "ranges_in_flight": 2}


def killed(source: str, output: Path, at_bytes: int, *, nap_s: float = 0.02) -> None:
    """Kill -9 a copy once its parts have so many bytes."""
    config = json.dumps({"source": source, "output_path": str(output), "nap_s": nap_s, **ACCESS})
    process = subprocess.Popen([sys.executable, slow_download.__file__, config], stdout=subprocess.DEVNULL)
    deadline_s = time.monotonic() + 120
    while parts_of(output) < at_bytes and process.poll() is None:
        assert time.monotonic() < deadline_s
        time.sleep(0.002)
    process.kill()
    assert process.wait() == -9


def on_server(server: CrawlServer, content: bytes) -> str:
    """The address of a file with the content."""
    server.files["a.bin"] = content
    return f"{server.url}a.bin"


def in_store(prefix: str, content: bytes) -> str:
    write_bytes(f"{prefix}/source/a.bin", content)
    return f"{prefix}/source/a.bin"


def require_continued(source: str, output: Path, content: bytes) -> None:
    """Copy what a killed process has not, and no byte more."""
    arrived = parts_of(output)
    assert not (output / "a.bin").exists()
    result = download(source, str(output), **ACCESS)
    assert (output / "a.bin").read_bytes() == content
    assert result["bytes_fetched"] == len(content) - arrived
    assert result["sha256"] == hashlib.sha256(f"{hashlib.sha256(content).hexdigest()}  a.bin\n".encode()).hexdigest()
    assert not (output / ".download/parts").exists()


def test_a_killed_copy_from_a_server_fetches_only_the_bytes_that_it_lacks(server: CrawlServer, output: Path) -> None:
    source = on_server(server, CONTENT)
    killed(source, output, random.Random(1).randrange(100_000, 900_000))
    require_continued(source, output, CONTENT)


def test_a_killed_copy_from_a_store_fetches_only_the_bytes_that_it_lacks(any_prefix: str, output: Path) -> None:
    source = in_store(any_prefix, CONTENT)
    killed(source, output, random.Random(any_prefix[:2]).randrange(100_000, 900_000))
    require_continued(source, output, CONTENT)


def test_a_file_of_a_server_that_changed_since_a_kill_is_fetched_afresh(server: CrawlServer, output: Path) -> None:
    killed(source := on_server(server, CONTENT), output, 300_000)
    on_server(server, CONTENT[::-1])  # of the same size
    assert download(source, str(output), **ACCESS)["bytes_fetched"] == len(CONTENT)
    assert (output / "a.bin").read_bytes() == CONTENT[::-1]


def test_a_file_of_a_store_that_changed_since_a_kill_is_fetched_afresh(any_prefix: str, output: Path) -> None:
    killed(source := in_store(any_prefix, CONTENT), output, 300_000)
    in_store(any_prefix, CONTENT[::-1])
    assert download(source, str(output), **ACCESS)["bytes_fetched"] == len(CONTENT)
    assert (output / "a.bin").read_bytes() == CONTENT[::-1]


def test_a_server_without_marks_is_read_from_the_beginning_after_a_kill(server: CrawlServer, output: Path) -> None:
    server.has_no_marks = True
    source = on_server(server, CONTENT)
    killed(source, output, 300_000)
    server.files["a.bin"] = CONTENT[::-1]
    assert download(source, str(output), **ACCESS)["bytes_fetched"] == len(CONTENT)
    assert (output / "a.bin").read_bytes() == CONTENT[::-1]


def test_a_part_that_was_damaged_is_noticed_where_the_store_has_a_checksum(gcs_prefix: str, output: Path) -> None:
    source = in_store(gcs_prefix, CONTENT)
    killed(source, output, 300_000)
    part = next((output / ".download/parts").glob("*/*"))
    part.write_bytes(b"x" * part.stat().st_size)
    assert download(source, str(output), **ACCESS)["retries_wrong_checksum"] == 1
    assert (output / "a.bin").read_bytes() == CONTENT


def test_a_copy_in_a_bucket_that_failed_continues_at_its_byte(
    server: CrawlServer, gcs_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    source = on_server(server, CONTENT)
    server.fault("a.bin", "", "cut", *["busy"] * 8)  # the first request is a HEAD
    with pytest.raises(ShardError, match="failed 8 times in a row"):
        download(source, f"{gcs_prefix}/out")
    arrived = sum(part.stat().st_size for part in tmp_path.glob("marin-download-*/*/*/*"))
    assert arrived > 500_000
    assert download(source, f"{gcs_prefix}/out")["bytes_fetched"] == len(CONTENT) - arrived


@pytest.mark.long
@pytest.mark.timeout(900)
def test_ten_kills_at_drawn_moments_cost_no_byte_that_has_arrived(any_prefix: str, output: Path) -> None:
    content = random.Random(any_prefix[:2]).randbytes(6_000_000)
    require_killed_ten_times(in_store(any_prefix, content), output, content)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_ten_kills_cost_a_server_what_was_in_flight(server: CrawlServer, output: Path) -> None:
    content = random.Random(2).randbytes(6_000_000)
    require_killed_ten_times(on_server(server, content), output, content)
    assert server.sent_bytes["a.bin"] < len(content) + 10 * 2 * ACCESS["range_bytes"]


def require_killed_ten_times(source: str, output: Path, content: bytes) -> None:
    draw = random.Random(source[:2])
    for at_bytes in sorted(draw.randrange(50_000, 5_000_000) for _ in range(10)):
        killed(source, output, at_bytes, nap_s=0.005)
        assert parts_of(output) >= at_bytes
    require_continued(source, output, content)
