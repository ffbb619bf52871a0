"""A job's log: the set-up from the job's stdout, then the attempt from its file; each line once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marin_resources.ray_tpu.cluster.monitor.job_log import JobLog, Shown, attempt_bytes
from marin_resources.ray_tpu.log.attempt_log import marker, marker_start

RAYS = (
    "2026-01-01 10:00:00,000\tINFO job_manager.py:581 -- Runtime env is setting up.\n"
    "Running entrypoint for job step-a4: exec python -m marin_resources.ray_tpu.job gs://bucket/note.json\n"
)


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "4.log"


def job_log(path: Path, lines: list[str], start_bytes: int = 0) -> JobLog:
    return JobLog(str(path), 4, lines.append, shown=Shown(bytes=start_bytes))


def test_the_set_up_comes_from_the_job_and_the_rest_from_the_attempts_log(path: Path, lines: list[str]) -> None:
    log = job_log(path, lines)
    path.write_bytes(b"one\ntw")
    log.poll_attempt()
    assert lines == [], "the set-up comes first"
    log.feed_job(f"{RAYS}Installed 3 packages\n{marker(str(path))}\none\ntwo\nthree\n")
    assert lines == ["Installed 3 packages"]
    assert log.set_up_is_over
    log.poll_attempt()
    assert lines[1:] == ["one"]
    assert log.position_bytes == 4
    path.write_bytes(b"one\ntwo\nthree\nfo")
    log.poll_attempt()
    log.poll_attempt()
    assert lines[1:] == ["one", "two", "three"]
    path.write_bytes(b"one\ntwo\nthree\nfour\nfive\n")
    log.finish()
    assert lines[1:] == ["one", "two", "three", "four", "five"]
    assert log.position_bytes == len("one\ntwo\nthree\nfour\nfive\n")


def test_of_a_job_that_died_before_its_attempt_all_is_passed_on_but_rays_own_lines(
    path: Path, lines: list[str]
) -> None:
    log = job_log(path, lines)
    log.feed_job(f"{RAYS}Traceback (most recent call last):\n\n  import x\nModuleNotFoundError: x")
    log.finish()
    log.finish()
    assert lines == ["Traceback (most recent call last):", "", "  import x", "ModuleNotFoundError: x"]
    assert log.position_bytes == 0


def test_the_last_bytes_of_a_killed_worker_come_from_the_jobs_stdout(path: Path, lines: list[str]) -> None:
    setting_up, entry_point = RAYS.splitlines(keepends=True)
    log = job_log(path, lines)
    stdout = f"{setting_up}{marker(str(path))}\none\n{entry_point}two\nthree"
    log.feed_job(stdout)
    path.write_bytes(b"one\nt")
    log.poll_attempt()
    log.finish(stdout)
    assert lines == ["one", "two", "three"], "Ray's own line, which may come late, is no line of the attempt"
    assert log.position_bytes == len("one\ntwo\nthree")


def test_after_a_break_no_line_comes_twice(path: Path, lines: list[str]) -> None:
    job = f"{RAYS}setting up\n\nset up\n{marker(str(path))}\none\n"
    log = job_log(path, lines)
    for cut in (len(RAYS) + 5, job.index("set up") + 2, job.index("---") + 5, job.index("one") + 1, len(job)):
        log.feed_job(job[:cut])
        log.job_restarted()
    log.finish()
    assert lines == ["setting up", "", "set up"]


def test_a_run_that_attaches_says_where_the_log_resumes_and_shows_new_lines(path: Path, lines: list[str]) -> None:
    path.write_text("one\ntwo\nthree\n")
    log = job_log(path, lines, start_bytes=8)
    assert log.set_up_is_over
    log.feed_job(f"{RAYS}set-up\n{marker(str(path))}\none\nt")
    log.poll_attempt()
    path.write_text("one\ntwo\nthree\nfour")
    log.finish()
    assert lines == ["three", "four"]
    assert log.position_bytes == len("one\ntwo\nthree\nfour")


def test_a_marker_after_an_unfinished_line_is_seen_and_that_of_another_attempt_is_a_line(
    path: Path, lines: list[str]
) -> None:
    log = job_log(path, lines)
    other = marker(str(path.with_name("3.log")))
    log.feed_job(f"{other}\nResolving... {marker(str(path))}\none\n")
    assert lines == [other, "Resolving... "]
    assert log.set_up_is_over


def test_an_attempt_whose_job_cannot_be_read_is_shown_when_the_job_has_ended(path: Path, lines: list[str]) -> None:
    log = job_log(path, lines)
    path.write_bytes(b"10%\r20%\r\n\xff\nlast")
    log.finish()
    assert lines == ["20%", "\ufffd", "last"]


text_lines = st.lists(st.text(alphabet="aü\u2028\x85 -€", max_size=4).map(lambda line: f"{line}\n"), max_size=12)


@settings(deadline=None, max_examples=150)
@given(set_up=text_lines, attempt=text_lines, last=st.sampled_from(["", "unfinished"]), data=st.data())
def test_however_both_are_cut_and_broken_off_each_line_comes_once_and_in_order(
    set_up: list[str], attempt: list[str], last: str, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, lines = Path(folder, "4.log"), list[str]()
        log, whole = job_log(path, lines), "".join(attempt) + last
        job, written = f"{RAYS}{''.join(f'>{line}' for line in set_up)}{marker(str(path))}\n{whole}", whole.encode()
        fed = size_bytes = 0
        for move in data.draw(st.lists(st.sampled_from(["job", "job", "attempt", "attempt", "break"]), max_size=20)):
            if move == "job":
                more = data.draw(st.integers(0, len(job) - fed))
                log.feed_job(job[fed : fed + more])
                fed += more
            elif move == "attempt":
                size_bytes = data.draw(st.integers(size_bytes, len(written)))
                path.write_bytes(written[:size_bytes])
                log.poll_attempt()
            else:
                log.job_restarted()
                fed = 0
            passed = written[: log.position_bytes].decode()
            assert passed == "" or passed.endswith("\n")
        log.feed_job(job[fed:])
        log.finish(job)
        assert log.position_bytes == len(written)
    attempt_lines = [line[:-1] for line in attempt] + ([last] if last else [])
    assert lines == [f">{line[:-1]}" for line in set_up] + attempt_lines


@settings(deadline=None, max_examples=50)
@given(attempt=text_lines, data=st.data())
def test_the_lines_of_an_earlier_run_and_of_this_one_are_all_lines(attempt: list[str], data: st.DataObject) -> None:
    written = "".join(attempt).encode()
    with tempfile.TemporaryDirectory() as folder:
        path, earlier, lines = Path(folder, "4.log"), list[str](), list[str]()
        path.write_bytes(written[: data.draw(st.integers(0, len(written)))])
        first = job_log(path, earlier)
        first.feed_job(f"{marker(str(path))}\n")
        first.poll_attempt()
        path.write_bytes(written)
        second = job_log(path, lines, start_bytes=first.position_bytes)
        second.feed_job(f"{marker(str(path))}\n")
        second.finish()
    assert earlier + lines == [line[:-1] for line in attempt]


def test_what_rays_job_agent_reads_of_a_jobs_stdout_is_byte_for_byte_the_attempts_log(
    path: Path, tmp_path: Path, lines: list[str]
) -> None:
    """Ray reads it as text, in which every "\\r" ends a line."""
    from ray.dashboard.modules.job.utils import file_tail_iterator

    code = """
import os, sys
from marin_resources.ray_tpu.log.attempt_log import redirect_output
with redirect_output(sys.argv[1], tee=True):
    for number in range(300):
        os.write(1, b"\\r%d%%\\r100%%\\r\\n" % number + "ü\\u2028\\x85\\x0b".encode() * 200 + b"\\xff\\n")
    os.write(1, b"unfinished")
"""
    with open(tmp_path / "job.log", "ab") as file:
        subprocess.run([sys.executable, "-c", code, str(path)], stdout=file, check=True)

    async def read() -> str:
        pieces: list[str] = []
        async for batch in file_tail_iterator(str(tmp_path / "job.log")):
            if batch is None:
                break
            pieces.extend(batch)
        return "".join(pieces)

    stdout = asyncio.run(read())
    assert attempt_bytes(stdout, marker_start(4)) == path.read_bytes()
    log = job_log(path, lines)
    log.finish(stdout)
    assert lines == path.read_text().removesuffix("\n").split("\n")
    assert len(lines) == 601
