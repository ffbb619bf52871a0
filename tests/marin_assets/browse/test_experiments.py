"""The list of experiments, and the page of each: complete, hostile, foreign, large; confined, and only read."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from browser_server import Browser, browsing
from experiments_for_pages import (
    LAST_LINE,
    drifting_experiment,
    failed_experiment,
    partitioned_experiment,
    write_record,
)
from recorded_steps import Recorded, step

from marin_assets.browse.limits import Limits, RequestWatch
from marin_assets.browse.pages import experiments as pages
from marin_assets.browse.pages.experiment import experiment
from marin_assets.browse.pages.experiments import experiments
from marin_assets.browse.places import Places
from marin_assets.browse.query import Query
from marin_assets.browse.site import Asked, Shown, WholePage
from marin_assets.browse.stored import experiments as stored
from marin_assets.experiment_page import from_record
from marin_assets.experiment_page.from_record import steps_of_record
from marin_resources.storage.completion import packs
from marin_resources.storage.files import write_bytes
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg onload=alert(3)>{{7*7}}"
SECRET = "the secret of another folder"


class Elements(HTMLParser):
    """The elements of a page, and their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


@pytest.fixture
def here(tmp_path: Path) -> Recorded:
    return Recorded(Store(str(tmp_path / "prefix")))


def requested(prefixes: Sequence[str], **query: object) -> Asked:
    places, limits = Places(prefixes), Limits()
    values = {name: str(value) for name, value in query.items()}
    return Asked(places=places, limits=limits, query=Query(values), watch=RequestWatch(places, limits))


def rows_of(here: Recorded, **query: object) -> list[Mapping[str, Any]]:
    shown = experiments(requested([here.store.prefix], **query))
    assert isinstance(shown, Shown)
    rows: list[Mapping[str, Any]] = shown.facts["rows"]
    return rows


def page_at(here: Recorded, path: str) -> WholePage:
    return experiment(requested([here.store.prefix], path=os.path.relpath(path, here.store.prefix)))


def put(here: Recorded, name: str, fields: object) -> str:
    data = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
    write_bytes(path := join(here.store.prefix, "experiments", name), data)
    return path


def names_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [row["title"].rpartition("-")[0] for row in rows]


def test_experiments_are_listed_newest_first_with_states_and_lead_to_their_pages(here: Recorded) -> None:
    failed_experiment(here), partitioned_experiment(here), drifting_experiment(here)
    with browsing(here.store.prefix) as browser:
        answer = browser.get("experiments")
        assert (answer.status, "3 experiments" in answer.text) == (200, True)
        links = re.findall(r'data-open href="([^"]+)"', answer.html)
        assert [re.sub(r".*%2F(.*)-.*", r"\1", link) for link in links] == ["news", "months", "web"]
        assert "2 complete, 1 failed, 1 not computed" in answer.text
        page = browser.send("GET", unescape(links[2]))
        assert (page.status, "4 steps: 2 complete, 1 failed, 1 not computed" in page.text) == (200, True)
        for link in re.findall(r'href="(/[^"#]*)["#]', page.html):
            assert browser.send("GET", unescape(link)).status == 200
        [log] = re.findall(r'href="([^"]+)#end">whole log<', page.html)
        assert LAST_LINE in unescape(browser.send("GET", unescape(log)).html)
        assert "/experiments" in re.findall(r'href="(/[^"]*)"', browser.get("").html)


def test_a_bucket_has_experiments_too(gcs_prefix: str) -> None:
    here = Recorded(Store(gcs_prefix))
    failed_experiment(here)
    drifting_experiment(here)
    assert names_of(rows_of(here)) == ["news", "web"]
    [row] = rows_of(here, state="failed")
    html = experiment(requested([gcs_prefix], path=unquote(row["address"].partition("path=")[2]))).html
    assert "4 steps: 2 complete, 1 failed, 1 not computed" in html
    [log] = re.findall(r'href="(/file[^"]*)#end">whole log<', html)
    assert gcs_prefix not in html
    with browsing(gcs_prefix) as browser:
        assert LAST_LINE in unescape(browser.send("GET", unescape(log)).html)


def test_a_request_ends_at_its_limit_of_time(here: Recorded) -> None:
    path = failed_experiment(here)
    with browsing(here.store.prefix, limits=Limits(seconds=0)) as browser:
        answer = browser.get("experiment", path=os.path.relpath(path, here.store.prefix))
        assert (answer.status, "took longer than 0 s, its limit" in answer.sentence) == (503, True)


def test_names_and_states_select_experiments(here: Recorded) -> None:
    failed_experiment(here), drifting_experiment(here)
    assert names_of(rows_of(here)) == ["news", "web"]
    assert names_of(rows_of(here, name="WE")) == ["web"]
    assert names_of(rows_of(here, state="failed")) == ["web"]
    assert names_of(rows_of(here, state="running")) == []
    with browsing(here.store.prefix) as browser:
        answer = browser.get("experiments", state="broken")
        assert (answer.status, "state is 'broken', expected one of failed" in answer.sentence) == (404, True)


def test_records_of_an_earlier_day_come_later_and_pages_continue(
    here: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in range(1, 8):
        put(here, f"day{day % 4}{day}-00000{day}.json", {"created_date": f"2026-01-0{day}T00:00:00", "steps": []})
    monkeypatch.setattr(pages, "RECORDS", 3)
    shown = experiments(requested([here.store.prefix], start=3))
    assert [row["created"] for row in shown.facts["rows"]] == [f"2026-01-0{day} 00:00" for day in (4, 3, 2)]
    assert (shown.facts["next"], shown.facts["total"]) == (6, 7)
    monkeypatch.setattr(stored, "MOST_BYTES", 1)
    assert len(rows_of(here)) == 3  # the request stops at its limit
    assert [bool(row["problem"]) for row in rows_of(here)] == [False, True, True]


def test_no_experiments_are_one_sentence(here: Recorded) -> None:
    with browsing(here.store.prefix) as browser:
        assert "0 experiments. " in browser.get("experiments").text


def hostile(here: Recorded) -> dict[str, str]:
    """Records of strangers by name; the path of each."""
    prefix = here.store.prefix
    version = {"name": EVIL, "config": {EVIL: EVIL}, "dependencies": [3, {}, None, {"name": "another"}, "x"]}
    evil = [
        {
            "name": EVIL,
            "output_path": f"{prefix}/{EVIL}",
            "fn_name": EVIL,
            "version": version,
            "dependencies": [3],
        },
        {"name": "data-<b>", "output_path": "/etc", "fn_name": "os:system"},
        {"name": "../../up", "output_path": f"{prefix}/../other/x-123456"},
        {"name": "bucket", "output_path": "gs://other-bucket/x-123456"},
        {"name": "nul\0", "output_path": f"{prefix}/nul\0x"},
        {"name": "parts", "output_path": f"{prefix}/../other", "version": {"name": "parts", "partitions": [EVIL]}},
    ]
    one = {"name": "x", "output_path": f"{prefix}/x-1"}
    circle = [{**one, "dependencies": [f"{prefix}/y-1"]}, {"name": "y", "output_path": f"{prefix}/y-1"}]
    circle[1]["dependencies"] = [f"{prefix}/x-1"]
    deep = b'{"steps": [], "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    records = {
        "evil": {"prefix": prefix, "git_commit": EVIL, "user": EVIL, "created_date": EVIL, "steps": evil},
        "outside": {"prefix": "/", "steps": [{"name": "etc", "output_path": "/etc"}]},
        "broken": b'{"steps": [{"name": "a"',
        "text": b"\xff\xfe no text",
        "list": [1, 2],
        "types": {"steps": [{"name": 3, "output_path": []}]},
        "deep": deep,
        "circle": {"prefix": prefix, "steps": circle},
        "empty": b"",
        "unnamed": {"steps": [{"name": "x", "output_path": "x-1", "version": {"config": 5, "dependencies": "abc"}}]},
        "odd": {"steps": [{"name": "x", "output_path": "x-1", "version": {"name": "x", "config": 5, "partitions": 1}}]},
        "half": b'{"steps": [{"name": "\\ud83d", "output_path": "x-\\ud83d"}]}',
        "newer": {"format_version": 99, "steps": []},
    }
    return {name: put(here, f"{name}-000000.json", fields) for name, fields in records.items()}


def test_hostile_records_are_inert_and_lead_nowhere(here: Recorded, tmp_path: Path) -> None:
    (tmp_path / "other/x-123456").mkdir(parents=True)
    (tmp_path / "other/x-123456/.executor_status").write_text("FAILED")
    (tmp_path / "other/x-123456/.executor_info").write_text(json.dumps({"error": SECRET, "description": SECRET}))
    (tmp_path / "other/secret").write_text(f'{{"created_date": "2026-01-01T00:00:00", "steps": [], "x": "{SECRET}"}}')
    hostile(here)
    folder = Path(here.store.prefix, "experiments")
    (folder / "link-000000.json").symlink_to(tmp_path / "other/secret")
    os.mkfifo(folder / "pipe-000000.json")
    (folder / "folder-000000.json").mkdir()
    (folder / f"{EVIL[:30].replace('/', '_')}-000000.json").write_text('{"steps": []}')
    before = digests(tmp_path)
    with browsing(here.store.prefix) as browser:
        listed = browser.get("experiments")
        assert listed.status == 200
        assert "link-000000" not in listed.html
        answers = {"": listed}
        for file in [*sorted(folder.iterdir()), folder / "nothing.json"]:
            answers[file.name.partition("-")[0]] = browser.get("experiment", path=f"experiments/{file.name}")
    assert {name: answer.status for name, answer in answers.items() if answer.status != 200} == {
        **dict.fromkeys(("broken", "text", "list", "types", "deep", "circle", "empty", "newer", "unnamed"), 422),
        **{"link": 403, "pipe": answers["pipe"].status, "folder": answers["folder"].status, "nothing.json": 404},
    }
    assert answers["pipe"].status in (403, 404, 422)
    assert answers["folder"].status in (403, 404, 422)
    for answer in answers.values():
        links = {attrs["href"] for _, attrs in Elements(answer.html).elements if str(attrs.get("href")).startswith("#")}
        assert links - {"#content"} <= {
            f"#{attrs['id']}" for _, attrs in Elements(answer.html).elements if "id" in attrs
        }
        tags = [tag for tag, _ in Elements(answer.html).elements]
        assert not {"img", "iframe", "object", "base"} & set(tags)
        assert tags.count("script") == answer.html.count('<script src="/static/browse.js" defer></script>')
        assert not [name for _, attrs in Elements(answer.html).elements for name in attrs if name.startswith("on")]
        assert (SECRET in answer.html, "Traceback" in answer.html) == (False, False)
        assert len(answer.body) < 2_000_000
    evil = answers["evil"].text
    assert "6 steps: 5 blocked" in evil
    assert evil.count("its path is outside of what is shown") >= 5
    assert not re.findall(r'href="/[^"]*(?:etc|other|bucket)', answers["evil"].html)
    assert digests(tmp_path) == before


def digests(folder: Path) -> dict[str, str]:
    """Path -> digest of every regular file below a folder."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_control_file_that_is_a_link_out_of_the_prefix_is_not_read(here: Recorded, tmp_path: Path) -> None:
    path = failed_experiment(here)
    [record] = [file for file in Path(here.store.prefix).rglob(".executor_info") if "filtered" in str(file)]
    other = tmp_path / "info.json"
    other.write_text(json.dumps({**json.loads(record.read_text()), "error": SECRET}))
    record.unlink()
    record.symlink_to(other)
    [log] = Path(record.parent, ".marin/attempts").glob("*.log")
    log.unlink()
    log.symlink_to(other)
    with browsing(here.store.prefix) as browser:
        answer = browser.get("experiment", path=os.path.relpath(path, here.store.prefix))
        assert (answer.status, SECRET in answer.html) == (403, False)
        record.unlink()
        record.write_text(other.read_text().replace(SECRET, "KeyError"))
        answer = browser.get("experiment", path=os.path.relpath(path, here.store.prefix))
        assert (answer.status, SECRET in answer.html, "Its log cannot be read" in answer.text) == (200, False, True)


def test_the_page_has_a_policy_for_its_one_style_and_nothing_is_written(
    here: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(from_record, "EXACT_UP_TO", 1)  # as for many steps, of which markers and packs are kept
    monkeypatch.setattr(packs, "FEWEST_RECORDS", 1)
    path = failed_experiment(here)
    done = [step(f"many/{number}", number) for number in range(3)]
    for made in done:
        here.make(made)
    records = [path, write_record(here, "many", *done)]
    marks = list(Path(here.store.prefix, ".marin/complete/many").iterdir())
    marks[0].unlink()
    before = digests(Path(here.store.prefix))
    with browsing(here.store.prefix) as browser:
        for record in records:
            answer = browser.get("experiment", path=os.path.relpath(record, here.store.prefix))
            assert answer.status == 200
            [style] = re.findall(r"<style>(.*?)</style>", answer.html, re.DOTALL)
            digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
            policy = answer.headers["content-security-policy"]
            assert f"default-src 'none'; style-src 'sha256-{digest}';" in policy
            assert ("script" in policy, "unsafe" in policy, "frame-ancestors 'none'" in policy) == (False, False, True)
            assert not [attrs for _, attrs in Elements(answer.html).elements if "style" in attrs]
        assert "3 steps: 3 complete" in answer.text
        assert browser.get("experiments").status == 200
    assert digests(Path(here.store.prefix)) == before
    steps_of_record(records[1])  # `marin page` writes what makes the next page faster
    assert len(digests(Path(here.store.prefix))) > len(before)


def test_a_record_of_marins_makes_a_page(here: Recorded) -> None:
    then = "gs://marin-us-central2"
    steps: list[dict[str, Any]] = [
        {"name": "raw/fineweb", "output_path": f"{then}/raw/fineweb-0a1b2c", "fn_name": "operations.download.main"},
        {"name": "tok/fineweb", "output_path": f"{then}/tok/fineweb-3d4e5f"},
    ]
    steps[1]["dependencies"] = [steps[0]["output_path"]]
    write_bytes(join(here.store.prefix, "raw/fineweb-0a1b2c/.executor_status"), b"SUCCESS")
    fields = {"worker_id": "w-1", "git_commit": "ab" * 20, "created_date": "2025-01-01T00:00:00", "user": "percy"}
    path = put(
        here, "exp-123456.json", {**fields, "ray_job_id": "7", "prefix": then, "description": None, "steps": steps}
    )
    html = page_at(here, path).html
    assert "2 steps: 1 complete, 1 not computed" in html
    assert 'href="/output?path=raw%2Ffineweb-0a1b2c"' in html
    assert (then in html, "percy" in html) == (False, False)
    [row] = rows_of(here)
    assert (row["created"], row["commit"]) == ("2025-01-01 00:00", "abababababab")
    assert [count for count, _ in row["states"]] == [1, 1]


@pytest.mark.long
def test_two_thousand_steps_are_a_page_in_five_seconds_and_two_megabytes(here: Recorded) -> None:
    root = step("raw/root")
    leaves = [step(f"leaf/part-{number}", number, root) for number in range(1_998)]
    path = write_record(here, "large", step("last/all", 1, *leaves[:100]), *leaves)
    began_s = time.process_time()
    html = page_at(here, path).html
    assert time.process_time() - began_s < 5
    assert "2,000 steps: 2,000 not computed" in html
    assert len(html.encode()) < 2_000_000
    began_s = time.process_time()
    [row] = rows_of(here)
    assert time.process_time() - began_s < 2
    assert row["steps"] == 2_000


def test_a_record_that_is_too_large_is_one_sentence(here: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    put(here, "large-000000.json", {"steps": [], "description": "x" * (stored.MOST_RECORD_BYTES + 1)})
    many = [{"name": f"a/{number}", "output_path": f"a/{number}-123456"} for number in range(6_000)]
    put(here, "many-000000.json", {"steps": many})
    long = [{"name": f"{number}{'x' * 300_000}", "output_path": "x"} for number in range(4)]
    put(here, "long-000000.json", {"steps": long})
    with browsing(here.store.prefix) as browser:
        phrases = {"large": "bytes, and the limit is", "many": "6,000 steps, and", "long": "1,200,004 characters, and"}
        for name, phrase in phrases.items():
            answer = browser.get("experiment", path=f"experiments/{name}-000000.json")
            assert (answer.status, phrase in answer.sentence) == (503, True)


@pytest.fixture
def several(here: Recorded, tmp_path: Path) -> Iterator[Browser]:
    other = Recorded(Store(str(tmp_path / "second")))
    failed_experiment(here), drifting_experiment(other)
    with browsing(here.store.prefix, other.store.prefix) as browser:
        yield browser


def test_the_experiments_of_all_prefixes_are_listed_and_their_links_lead_to_their_own(several: Browser) -> None:
    answer = several.get("experiments")
    assert "2 experiments" in answer.text
    for link in re.findall(r'data-open href="([^"]+)"', answer.html):
        page = several.send("GET", unescape(link))
        assert page.status == 200
        for inner in re.findall(r'href="(/output[^"]*)"', page.html):
            assert several.send("GET", unescape(inner)).status == 200
