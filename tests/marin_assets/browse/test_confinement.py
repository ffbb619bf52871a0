"""The data browser shows its prefixes alone, and only reads."""

from __future__ import annotations

import hashlib
import itertools
import os
import threading
from pathlib import Path
from urllib.parse import quote

import pytest
from browser_server import Browser, browsing
from stored_outputs_for_browsing import store_output

from marin_assets.browse.errors import BrowseError
from marin_assets.browse.places import Places

PAGES = ("output", "rows", "row", "cell", "page", "file", "tokens", "way", "search", "sample", "beside", "experiment")
SECRET = "the secret of another folder"
ROWS = "documents/web-abc123/part-0.jsonl"


@pytest.fixture
def prefix(tmp_path: Path) -> str:
    prefix = tmp_path / "prefix"
    store_output(str(prefix), "documents/web", {"part-0.jsonl": [{"id": "a", "text": "hello"}]})
    for sibling in ("prefix-x", "other"):
        (tmp_path / sibling).mkdir()
        (tmp_path / sibling / "rows.jsonl").write_text(f'{{"id": "s", "text": "{SECRET}"}}\n')
        (tmp_path / sibling / "notes.txt").write_text(SECRET)
    inside = prefix / "documents/web-abc123"
    (inside / "link.jsonl").symlink_to(tmp_path / "other/rows.jsonl")
    (inside / "link.txt").symlink_to(tmp_path / "other/notes.txt")
    (inside / "loop.jsonl").symlink_to(inside / "loop.jsonl")
    (inside / "folder").symlink_to(tmp_path / "other")
    (prefix / "outside").symlink_to(tmp_path / "other")
    os.mkfifo(inside / "pipe.jsonl")
    return str(prefix)


def attempts(prefix: str) -> list[str]:
    """Raw values of the query's path: outside of the prefix, no path at all, or nothing there."""
    above = os.path.dirname(prefix)
    texts = [
        "..", "../", "../other/rows.jsonl", "../prefix-x/rows.jsonl", "documents/../../other/rows.jsonl",
        "documents/web-abc123/../../../other/rows.jsonl", "./../other/rows.jsonl", ".", "./documents",
        "/etc/passwd", "/etc", "/", "//etc/passwd", "///etc/passwd", "/proc/self/environ", "~root/.bashrc", "~/x.jsonl",
        f"{above}/other/rows.jsonl", f"{above}/prefix-x/rows.jsonl", f"{prefix}-x/rows.jsonl",
        f"{prefix}/../other/rows.jsonl",
        "file:///etc/passwd", "file://localhost/etc/passwd", f"file://{above}/other/rows.jsonl", "FILE:///etc/passwd",
        "gs://other/rows.jsonl", "s3://other/rows.jsonl", "http://127.0.0.1/rows.jsonl", "mirror://raw/x",
        "memory://x.jsonl",
        "simplecache::file:///etc/passwd", "documents\\..\\..\\other\\rows.jsonl", "..\\other\\rows.jsonl",
        "outside/rows.jsonl", "outside", "documents/web-abc123/link.jsonl", "documents/web-abc123/link.txt",
        "documents/web-abc123/folder/rows.jsonl", "documents/web-abc123/loop.jsonl",
        "documents/web-abc123/nothing.jsonl",
        "documents/web-abc123/part-0.jsonl/x", "documents/web-abc123/part-0.jsonl\0.txt", "\0", "a" * 5000, "x/" * 2000,
        f"{'b' * 300}.jsonl", "documents/web-abc123/\r\n.jsonl",
    ]  # fmt: skip
    raw = [
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e/other/rows.jsonl",
        "..%252fother%252frows.jsonl",
        "%252e%252e/x",
        "%ff%fe.jsonl",
        "%c0%ae%c0%ae/x",
    ]
    return [*(quote(text, safe="") for text in texts), *raw]


def test_no_path_leads_out_of_the_prefix(prefix: str) -> None:
    """Each of 50 paths is refused in one sentence, by the pages in turn; none ends in a traceback."""
    wrong = []
    with browsing(prefix) as browser:
        for page, text in zip(itertools.cycle(PAGES), attempts(prefix), strict=False):
            answer = browser.send("GET", f"/{page}?path={text}&id=a&text=a&row=0")
            if answer.status not in (403, 404) or SECRET in answer.html or "Traceback" in answer.html:
                wrong.append((page, text[:60], answer.status, answer.text[:200]))
    assert len(attempts(prefix)) >= 40
    assert wrong == []


@pytest.mark.long
def test_no_path_leads_out_of_the_prefix_on_any_page(prefix: str) -> None:
    with browsing(prefix) as browser:
        statuses = {
            browser.send("GET", f"/{page}?path={text}&id=a&text=a&row=0").status
            for page in PAGES
            for text in attempts(prefix)
        }
    assert statuses == {403, 404}


def test_a_special_file_is_refused_and_blocks_nothing(prefix: str) -> None:
    with browsing(prefix) as browser:
        answer = browser.get("rows", path="documents/web-abc123/pipe.jsonl")
    assert answer.status == 422
    assert "is a FIFO, expected a file" in answer.sentence


def test_links_out_of_the_prefix_are_named_and_their_folders_are_not_listed(prefix: str) -> None:
    with browsing(prefix) as browser:
        text = browser.get("output", path="documents/web-abc123").text
    assert "part-0.jsonl" in text
    assert "folder: a link that leads out of what is shown" in text
    assert "link.jsonl: a link that leads out of what is shown" in text
    assert "loop.jsonl: Too many levels of symbolic links" in text
    assert "pipe.jsonl" in text
    assert "notes.txt" not in text.replace("link.txt", "")


def test_a_prefix_may_be_reached_through_a_link_itself(prefix: str, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(prefix)
    with browsing(str(link)) as browser:
        assert "hello" in browser.get("rows", path=ROWS).text
        assert "hello" in browser.get("rows", path=f"{link}/{ROWS}").text
        assert "hello" in browser.get("rows", path=f"{prefix}/{ROWS}").text


def test_a_second_prefix_is_shown_if_it_is_listed(prefix: str, tmp_path: Path) -> None:
    other = f"{tmp_path}/other"
    with browsing(prefix, other) as browser:
        answer = browser.get("rows", path=f"{other}/rows.jsonl")
        assert SECRET in answer.text
        assert browser.get("rows", path=f"{prefix}-x/rows.jsonl").status == 403


@pytest.mark.parametrize(
    "text", ["gs://b-x/rows.jsonl", "gs://b", "gs://bb/p/x", "gs://b/px/x", "s3://b/p/x", "gs://B/p/x"]
)
def test_another_bucket_is_not_below_a_prefix_that_its_name_begins_with(text: str) -> None:
    with pytest.raises(BrowseError):
        Places(["gs://b/p"]).resolve(text)


def test_the_spellings_of_a_bucket_are_one_place() -> None:
    places = Places(["gs://b/p"])
    assert places.resolve("gcs://b/p/x.jsonl").path == "gs://b/p/x.jsonl"
    assert places.resolve("x.jsonl").path == "gs://b/p/x.jsonl"
    assert places.resolve("gs://b/p").text == ""


def test_a_link_that_is_swapped_in_after_the_look_shows_nothing(prefix: str, tmp_path: Path) -> None:
    """The place of the open file counts, not that of its path a moment before."""
    victim, spare = Path(prefix, "documents/web-abc123/swapped.jsonl"), tmp_path / "spare.jsonl"
    victim.write_text('{"id": "a", "text": "hello"}\n')
    spare.symlink_to(tmp_path / "other/rows.jsonl")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            os.rename(victim, tmp_path / "aside.jsonl")
            os.rename(spare, victim)
            os.rename(victim, spare)
            os.rename(tmp_path / "aside.jsonl", victim)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        with browsing(prefix) as browser:
            answers = [browser.get("rows", path="documents/web-abc123/swapped.jsonl") for _ in range(60)]
    finally:
        stop.set()
        swapping.join()
    assert not any(SECRET in answer.html for answer in answers)
    assert {answer.status for answer in answers} <= {200, 403, 404}
    assert any(answer.status == 200 for answer in answers)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
def test_only_reads_are_answered(prefix: str, method: str) -> None:
    with browsing(prefix) as browser:
        for target in ("/", f"/rows?path={ROWS}", "/static/browse.css", "/nothing"):
            answer = browser.send(method, target)
            assert answer.status == 405
            assert answer.headers["allow"] == "GET, HEAD"
        head = browser.send("HEAD", f"/rows?path={ROWS}")
    assert (head.status, head.body) == (200, b"")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "", "[::2]"]
)
def test_a_request_for_another_host_is_refused(prefix: str, host: str) -> None:
    """A name of a stranger that leads to this machine would make the browser's pages readable by their script."""
    with browsing(prefix) as browser:
        answer = browser.send("GET", f"/rows?path={ROWS}", {"Host": host})
    assert answer.status == 403
    assert "expected one of" in answer.html
    assert "hello" not in answer.html


@pytest.mark.parametrize("host", ["localhost:1234", "127.0.0.1", "LOCALHOST", "[::1]:80", "data.example.org"])
def test_a_request_for_this_machine_or_a_listed_host_is_answered(prefix: str, host: str) -> None:
    with browsing(prefix, hosts=("data.example.org",)) as browser:
        assert browser.send("GET", f"/rows?path={ROWS}", {"Host": host}).status == 200


def test_nothing_below_the_prefix_changes(prefix: str) -> None:
    before = digest_of(prefix)
    with browsing(prefix) as browser:
        for page in ("", *PAGES):
            for path in ("documents/web-abc123", ROWS, "documents", "nothing"):
                browser.get(page, path=path, id="a", text="hello", row=0, seed=1)
    assert digest_of(prefix) == before


def digest_of(folder: str) -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(folder).rglob("*")):
        state = path.lstat()
        digest.update(f"{path} {state.st_mode} {state.st_size} {state.st_mtime_ns}".encode())
        if path.is_file() and not path.is_symlink():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def test_a_damaged_file_is_a_sentence_and_the_next_request_is_answered(prefix: str) -> None:
    place = Path(prefix, "documents/web-abc123")
    (place / "cut.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd\x04")
    (place / "not.parquet").write_bytes(b"PAR1 and nothing")
    (place / "text.jsonl.gz").write_text("plain")
    with browsing(prefix) as browser:
        for name in ("cut.jsonl.zst", "not.parquet", "text.jsonl.gz"):
            answer = browser.get("rows", path=f"documents/web-abc123/{name}")
            assert answer.status == 422
            assert name in answer.sentence
            assert "Traceback" not in answer.html
        assert browser.get("output", path="documents/web-abc123").status == 200
        assert "hello" in browser.get("rows", path=ROWS).text


def test_a_number_that_is_none_is_a_sentence(prefix: str) -> None:
    with browsing(prefix) as browser:
        for value in ("-1", "1e3", "٣", "9" * 30, "x", "1.5"):
            answer = browser.get("rows", path=ROWS, start=value)
            assert answer.status == 404
            assert "expected a number from 0 to" in answer.sentence
    assert isinstance(browser, Browser)
