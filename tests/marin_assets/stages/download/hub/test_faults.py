"""Every fault of a hub ends with the right bytes, or with one sentence and no file."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest
from dataset_hub import DatasetHub
from hub_downloads import FILES, NAME, download, files_of

from marin_assets.stages.download.hub.repository import HubError
from marin_assets.stages.download.web import answers
from marin_assets.stages.download.web.faults import DownloadError
from marin_resources.ray_tpu.shards.map_shards import ShardError

LARGE, SMALL = "data/a.bin", "data/sub/c.txt"
PASSING = {
    "cut": "cut",
    "hang_up": "connection",
    "server_error": "server_error",
    "limited": "limited",
    "ignore_range": "range_ignored",
    "wrong_range": "wrong_range",
    "lie": "wrong_size",
    "flip": "wrong_checksum",
    "expire": "expired",
    "other_commit": "changed",
    "other_etag": "changed",
    "other_size": "wrong_size",
}
"""Fault of the hub -> the reason under which it is counted."""


@pytest.mark.parametrize("fault", PASSING)
def test_a_fault_that_passes_is_counted_and_the_bytes_are_right(hub: DatasetHub, output: Path, fault: str) -> None:
    hub.fault(LARGE, fault)
    result = download(output)
    assert files_of(output) == FILES
    assert result["retries"] == result[f"retries_{PASSING[fault]}"] == 1


@pytest.mark.parametrize("fault", ["cut", "hang_up", "server_error", "limited", "flip", "other_commit", "other_etag"])
def test_a_fault_of_a_small_file_passes_too(hub: DatasetHub, output: Path, fault: str) -> None:
    hub.add(NAME, {"t.txt": b"text " * 9000})
    hub.fault("t.txt", fault)
    assert download(output)[f"retries_{PASSING[fault]}"] == 1
    assert files_of(output) == {"t.txt": b"text " * 9000}


@pytest.mark.parametrize("fault", ["server_error", "limited", "no_json", "hang_up"])
@pytest.mark.parametrize("place", ["revision", "tree"])
def test_a_fault_of_the_api_passes(hub: DatasetHub, output: Path, place: str, fault: str) -> None:
    hub.page_rows = 2
    hub.fault(place, fault)
    assert download(output)["retries"] == 1
    assert files_of(output) == FILES


def test_a_connection_that_is_cut_continues_at_the_byte_where_it_ended(hub: DatasetHub, output: Path) -> None:
    hub.add(NAME, {"a.bin": FILES[LARGE]})
    hub.fault("a.bin", "cut", "cut", "cut")
    result = download(output, range_bytes=10**6)
    assert files_of(output) == {"a.bin": FILES[LARGE]}
    assert result["retries_cut"] == 3
    assert result["bytes_fetched"] == hub.sent_bytes["a.bin"] == len(FILES[LARGE])


def test_a_server_without_ranges_sends_whole_files(hub: DatasetHub, output: Path) -> None:
    """Also one that cuts them: what has arrived is skipped, never appended twice."""
    hub.fault(LARGE, *["ignore_range"] * 100)
    assert download(output, ranges_in_flight=2)["files"] == len(FILES)
    assert files_of(output) == FILES
    one_range = output.parent / "one range"
    hub._faults[LARGE].clear()
    hub.fault(LARGE, "cut", "ignore_range")
    download(one_range, range_bytes=10**6)
    assert files_of(one_range) == FILES


@pytest.mark.parametrize("size", [10_000, 10**6])
def test_a_flipped_bit_twice_is_an_error_with_both_checksums_and_no_file(
    hub: DatasetHub, output: Path, size: int
) -> None:
    hub.add(NAME, {"a.bin": FILES[LARGE]})
    hub.fault("a.bin", *["flip"] * 100)
    with pytest.raises(ShardError, match=r"'a\.bin' of the dataset 'lab/texts' has the SHA-256 '\w{64}', expected '\w"):
        download(output, range_bytes=size)
    assert files_of(output) == {}
    assert not list((output / ".hub/parts").iterdir())
    hub._faults["a.bin"].clear()
    download(output)
    assert files_of(output) == {"a.bin": FILES[LARGE]}


def test_a_flipped_bit_of_a_file_in_git_is_an_error(hub: DatasetHub, output: Path) -> None:
    hub.fault(SMALL, "flip", "flip")
    with pytest.raises(ShardError, match=r"has the git checksum '\w{40}', expected '\w{40}' by the listing, twice"):
        download(output)


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("lie", "because of 'wrong_size': the server has 307201 bytes, expected 307200 by the listing"),
        ("other_size", "because of 'wrong_size': the hub sent the size 307201, expected 307200 by the listing"),
        ("other_commit", "because of 'changed': the hub sent the commit 'fff"),
        ("expire", "because of 'expired': the storage answered 403"),
        ("wrong_range", "because of 'wrong_range': the server sent the range 'bytes 1-"),
    ],
)
def test_a_fault_that_stays_is_a_sentence(hub: DatasetHub, output: Path, fault: str, sentence: str) -> None:
    hub.fault(LARGE, *[fault] * 100)
    with pytest.raises(ShardError, match=sentence):
        download(output, range_bytes=10**6)
    assert LARGE not in files_of(output)


def test_a_signed_address_that_expires_is_replaced(hub: DatasetHub, output: Path) -> None:
    hub.add(NAME, {"a.bin": FILES[LARGE]})
    hub.gate = threading.Event()
    thread = threading.Thread(target=download, args=(output,), kwargs={"ranges_in_flight": 1})
    thread.start()
    assert hub.half_sent.wait(20)
    hub.expire()
    hub.gate.set()
    thread.join()
    assert files_of(output) == {"a.bin": FILES[LARGE]}
    assert hub.count("hub", "/resolve/") == 2
    assert hub.count("storage") == 5 + 1  # the ranges, and the request that was refused


@pytest.mark.parametrize("fault", ["trickle", "silent"])
def test_a_server_that_sends_too_slowly_is_left(
    hub: DatasetHub, output: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(answers, "STALL_S", 1.0)
    hub.fault(LARGE, fault)
    result = download(output)
    assert files_of(output) == FILES
    assert result["retries_slow"] >= 1
    assert hub.sent_bytes[LARGE] < len(FILES[LARGE]) + 65536


@pytest.mark.parametrize(
    ("change", "fields", "sentence"),
    [
        ({"is_gated": True}, {}, r"The dataset 'lab/texts' is gated, and no token was sent \(401\)\. Accept its cond"),
        ({"is_private": True}, {}, r"has no dataset 'lab/texts', or it is private, and no token was sent \(401\)"),
        (
            {},
            {"dataset": "lab/other"},
            "has no dataset 'lab/other', or it is private.*Correct the name",
        ),
        (
            {},
            {"revision": "v9"},
            r"The dataset 'lab/texts' has no revision 'v9' \(404\), expected a branch",
        ),
    ],
)
def test_a_refusal_is_a_sentence_with_what_to_do(
    hub: DatasetHub, output: Path, change: dict[str, bool], fields: dict[str, str], sentence: str
) -> None:
    vars(hub.repos[f"datasets/{NAME}"]).update(change)
    with pytest.raises((HubError, ShardError), match=sentence):
        download(output, **fields)


@pytest.mark.parametrize("address", ["file:///etc/passwd", "http://[bad", "http://host:port/x", "http://:0/", ""])
def test_a_redirect_to_no_address_is_not_followed(hub: DatasetHub, output: Path, address: str) -> None:
    hub.redirects = address
    with pytest.raises(DownloadError, match=r"because of 'wrong_answer': a redirect from 'http://127.* to no address"):
        download(output)


def test_redirects_in_a_circle_end(hub: DatasetHub, output: Path) -> None:
    hub.redirects = "/round?again"
    with pytest.raises(DownloadError, match="'wrong_answer'"):
        download(output)


def test_a_file_that_is_listed_and_missing_is_a_sentence(hub: DatasetHub, output: Path) -> None:
    row = {"type": "file", "path": "ghost.bin", "oid": "0" * 40, "size": 3}
    hub.repos[f"datasets/{NAME}"].rows.append(row)
    with pytest.raises(ShardError, match=r"The dataset 'lab/texts' has no file 'ghost\.bin' \(404\)"):
        download(output)


@pytest.mark.parametrize(
    "row",
    [
        None,
        {"type": "file", "path": "x.bin", "size": 3},
        {"type": "file", "path": "x.bin", "size": -1, "oid": "0" * 40},
        {"type": "file", "path": "x.bin", "size": 3, "oid": "0" * 40, "lfs": {"oid": "no", "size": 3}},
        {"type": "file", "path": 7, "size": 3, "oid": "0" * 40},
    ],
)
def test_a_row_without_a_checksum_or_a_size_is_refused(hub: DatasetHub, output: Path, row: object) -> None:
    hub.repos[f"datasets/{NAME}"].rows.append(row)
    with pytest.raises(HubError, match=r"has the row .*, expected a path, a size and the checksum of a file"):
        download(output)


@pytest.mark.long
def test_all_faults_in_any_order_for_200_files(hub: DatasetHub, output: Path) -> None:
    draw = random.Random(7)
    files = {f"data/{i:03}.bin": draw.randbytes(draw.randrange(1, 60_000)) for i in range(200)}
    hub.add(NAME, files)
    for name in files:
        hub.fault(name, *draw.sample([fault for fault in PASSING if fault not in ("limited",)], draw.randrange(3)))
    download(output, range_bytes=20_000, max_shard_files=30)
    assert files_of(output) == files
