"""`marin speedrun`: the check of submitted entries, and the page of entries."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from speedrun_entries import marins_folder, measured, run_info, write_results
from stored_outputs_for_browsing import store_output

from marin_assets.stages.report.speedruns.entry import MARINS_METRIC, results_file

Marin = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "speedruns"


def test_entries_without_a_fault_are_counted(marin: Marin, folder: Path) -> None:
    marins_folder(folder, runs=4)
    assert marin("speedrun", "check") == (0, "4 entries, no faults\n", "")
    assert marin("speedrun", "check", "speedruns/recipe_00/130m") == (0, "1 entry, no faults\n", "")
    assert marin("speedrun", "check", "speedruns/recipe_00/130m/speedrun_results.json")[0] == 0


def test_each_fault_is_a_line_with_its_file_and_the_code_is_1(marin: Marin, folder: Path) -> None:
    write_results(folder / "a", [run_info()])
    write_results(folder / "b", [run_info(num_chips=32, description=None)])
    write_results(folder / "c", [run_info()])
    (folder / "d").mkdir()
    (folder / "d/speedrun_results.json").write_text("{")
    code, out, err = marin("speedrun", "check")
    lines = out.splitlines()
    assert (code, err, len(lines)) == (1, "", 4)
    assert lines[0] == "speedruns/b/speedrun_results.json: 'description' is null, expected a text."
    assert lines[1].startswith("speedruns/d/speedrun_results.json: The file of speedruns")
    assert lines[2].startswith("speedruns/c/speedrun_results.json: it is the run of 'a'")
    assert lines[3] == "4 entries, 3 faults"
    code, out, _ = marin("speedrun", "check", "--json")
    listed = json.loads(out)
    assert (code, listed["entries"]) == (1, 4)
    assert [fault["entry"] for fault in listed["faults"]] == ["b", "d", "c"]


def test_a_folder_that_is_missing_or_empty_is_a_sentence(marin: Marin, folder: Path) -> None:
    code, out, err = marin("speedrun", "check")
    assert (code, out) == (2, "")
    assert err == "'speedruns' does not exist, expected a folder with files 'speedrun_results.json'.\n"
    folder.mkdir()
    assert "has no file 'speedrun_results.json'" in marin("speedrun", "check")[2]


def test_the_page_of_folders_is_written_and_its_path_printed(marin: Marin, folder: Path, tmp_path: Path) -> None:
    marins_folder(folder, runs=8)
    options = ("--metric", MARINS_METRIC, "--target", "300m=1.1", "--output", "pages")
    assert marin("speedrun", "page", "speedruns", *options)[:2] == (0, "pages/speedruns.html\n")
    html = (tmp_path / "pages/speedruns.html").read_text()
    assert "<b>8</b><span>runs</span>" in html
    assert "at most 1.1" in html


def test_the_page_of_the_prefix_has_the_newest_of_each_step(marin: Marin, folder: Path, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    for version, value, age in (("aaaaaa", 1.5, 100), ("bbbbbb", 1.4, 0)):
        path = prefix / store_output(str(prefix), "speedruns/adam/64", {}, version=version, age_s=age)
        info = measured(1e18, value, metric="eval/bpb", **{"eval/bpb": value})
        (path / "speedrun_results.json").write_bytes(results_file([info]))
    assert marin("speedrun", "page", "--prefix", str(prefix))[:2] == (0, "./speedruns.html\n")
    html = (tmp_path / "speedruns.html").read_text()
    assert "<b>1</b><span>runs</span>" in html
    assert "best eval/bpb: adam/64" in html


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--target", "300m"), "--target is '300m', expected a name and a number, as in 300m=1.104."),
        (("--target", "300m=low"), "--target is '300m=low', expected a name and a number"),
        (("--target", "=1.1"), "--target is '=1.1', expected a name and a number"),
        (("--baseline", "adam"), "The baseline is 'adam' without a floor"),
        (("--goal", "low"), "goal is 'low', expected one of"),
        (("--floor", "x"), "argument --floor: invalid float value: 'x'"),
        (("--forecast", "nan"), "forecast_flops is nan, expected a finite number"),
        (("nowhere",), "'nowhere' does not exist, expected a folder"),
        (("--prefix", "empty"), "has no complete output of a step 'speedruns/<name>'."),
    ],
)
def test_a_wrong_option_is_one_sentence(
    options: tuple[str, ...], sentence: str, marin: Marin, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    marins_folder(folder, runs=1)
    code, out, err = marin("speedrun", "page", *options)
    assert (out, err.count("\n")) == ("", 1), err
    assert code in (1, 2)
    assert sentence in err
