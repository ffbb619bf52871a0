"""`marin cluster simulate`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marin_assets.cli.main import main

SMALL = ("--hosts", "32", "--days", "2", "--lost-every", "1d", "--slice-hosts", "4,16", "--policy", "10m,daly")


def test_a_table_says_which_policy_is_best(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "simulate", *SMALL]) == 0
    done = capsys.readouterr()
    header, *rows = done.out.splitlines()
    assert header.split() == (
        [
            "slice",
            "slices",
            "lost",
            "every",
            "policy",
            "interval",
            "tries",
            "goodput",
            "work",
            "lost",
            "startup",
            "waited",
        ]
    )
    assert [row.split()[0] for row in rows] == ["4", "4", "16", "16"]
    assert sum("*" in row for row in rows) == 2
    assert "4 of 4: 16 hosts, daly" in done.err


def test_a_trace_a_plot_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, picture = tmp_path / "trace.csv", tmp_path / "goodput.svg"
    trace.write_text("host,gone_s,back_s\n0,7200,9000\n1,20000,21000\n")
    words = ["--trace", str(trace), "--slice-hosts", "1,2", "--policy", "5m,20m,young", "--plot", str(picture)]
    assert main(["cluster", "simulate", "--json", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(each["hosts"], each["slices"]) for each in found] == [(1, 2)] * 3 + [(2, 1)] * 3
    assert all(0 < each["useful"] < each["goodput"] < 1 for each in found)
    assert "Daly" in picture.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--policy", "5"], "--policy has '5', expected a time above 0, such as 30s or 5m."),
        (["--policy", ""], "--policy has '', expected a time above 0"),
        (["--save", "0s"], "--save has '0s', expected a time above 0"),
        (["--slice-hosts", "8,x"], "--slice-hosts is '8,x', expected numbers of hosts from 1 to 1024."),
        (["--slice-hosts", "2048"], "expected numbers of hosts from 1 to 1024."),
        (["--hosts", "0"], "--hosts is 0, expected 1 or more."),
        (["--days", "-1"], "--days is -1, expected a number above 0."),
        (["--trace", "/no/file.csv"], "/no/file.csv cannot be read"),
    ],
)
def test_a_mistake_is_one_sentence(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "simulate", *words]) == 2
    assert said in capsys.readouterr().err
