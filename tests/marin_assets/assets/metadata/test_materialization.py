"""What an asset's page shows: what its step has read from other regions, its job, where the time went."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from marin_assets.assets.metadata.materialization import materialization_metadata
from marin_resources.hardware.resources import tpu
from marin_resources.orchestrator.produce import Produced
from marin_resources.storage.files import write_bytes
from marin_resources.storage.mirror import local_path_of
from marin_resources.storage.output.commit import NAME as COMMIT
from marin_resources.storage.output.notes.cost import spent_of
from marin_resources.storage.transfer.account import Account, charged_to
from marin_resources.types.output import Match, Observed
from marin_resources.types.record import Record


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Account:
    """A step here, and a file of 900 bytes in another region."""
    here, there = tmp_path / "here", tmp_path / "there"
    monkeypatch.setenv("MARIN_PREFIX", str(here))
    monkeypatch.setenv("MARIN_MIRROR_PREFIXES", f"here={here},there={there}")
    write_bytes(f"{there}/raw/words.txt", b"x" * 900)
    return Account(step="counts", output_path=f"{here}/counts-1", prefix=str(here), attempt=1, budget_bytes=1000)


def page_of(account: Account, words_path: str) -> dict[str, object]:
    observed = Observed(path=account.output_path, record=Record.from_dict({"config": {"words_path": words_path}}))
    return materialization_metadata(Produced(observed=observed, reused=False))


def test_what_was_moved_is_shown_with_its_bytes_and_files(account: Account) -> None:
    with charged_to(account):
        local_path_of("mirror://raw/words.txt")
    page = page_of(account, "mirror://raw/words.txt")
    assert page["transferred_bytes"] == 900
    [row] = page["transfers"].records  # type: ignore[attr-defined]
    assert (row.data["path"], row.data["from"], row.data["to"]) == ("mirror://raw/words.txt", "there", "here")


def test_a_step_that_may_read_elsewhere_and_did_not_shows_nothing_moved(account: Account) -> None:
    page = page_of(account, "mirror://raw/words.txt")
    assert page["transferred_bytes"] == 0
    assert "transfers" not in page


def test_other_steps_report_nothing_of_transfers(account: Account) -> None:
    assert "transferred_bytes" not in page_of(account, "/somewhere/raw/words.txt")


JOB = {"id": "a-1-0b6ed9c4-a3", "dashboard": "http://10.0.0.5:8265/"}
TIMING = {"queue_s": 31.5, "setup_s": 4.25, "compute_s": 120.0}


def page_of_record(tmp_path: Path, **record: object) -> dict[str, object]:
    observed = Observed(path=str(tmp_path), record=Record.from_dict({"attempt": 3, **record}))
    return materialization_metadata(Produced(observed=observed, reused=True))


def test_the_cost_is_shown_with_its_price_or_why_it_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = {"spent": spent_of(tpu("v4-8"), 3600.0, None), "bytes_in": 7}
    monkeypatch.setenv("MARIN_DEVICE_PRICES", "v4=2@2026-11-01")
    page = page_of_record(tmp_path, **record)
    assert (page["device_hours"], page["cost_dollars"], page["bytes_in"]) == (4.0, 8.0, 7)
    assert not {"cpu_s", "cost_unknown"} & page.keys()
    monkeypatch.delenv("MARIN_DEVICE_PRICES")
    assert page_of_record(tmp_path, **record)["cost_unknown"] == "no price of tpu_v4_8"
    monkeypatch.setenv("MARIN_DEVICE_PRICES", "nonsense")
    assert "'nonsense'" in str(page_of_record(tmp_path, **record)["cost_unknown"])
    assert not {"cost_dollars", "cost_unknown"} & page_of_record(tmp_path).keys()


def test_what_a_job_computed_links_to_the_job_and_reports_what_it_took(tmp_path: Path) -> None:
    shipped = {"mode": "ship", "package": "gcs://_ray_pkg_0f1e.zip"}
    page = page_of_record(tmp_path, job={**JOB, "code": shipped}, timing=TIMING)
    assert page["job"] == dg.MetadataValue.url("http://10.0.0.5:8265/#/jobs/a-1-0b6ed9c4-a3")
    assert (page["job_id"], page["attempts"]) == ("a-1-0b6ed9c4-a3", 3)
    assert page["code"] == "shipped gcs://_ray_pkg_0f1e.zip"
    assert {name: page[name] for name in TIMING} == TIMING


def test_a_job_that_ran_the_code_of_its_image_says_so(tmp_path: Path) -> None:
    assert page_of_record(tmp_path, job={**JOB, "code": {"mode": "image", "package": None}})["code"] == "image"
    assert page_of_record(tmp_path, job={**JOB, "code": "image"})["code"] == "image"


def test_without_a_job_there_is_no_word_of_one_and_the_time_is_reported(tmp_path: Path) -> None:
    page = page_of_record(tmp_path, timing={"queue_s": 0.1, "setup_s": 0.2, "compute_s": 9.0})
    assert not {"job", "job_id", "attempts", "code"} & page.keys()
    assert page["compute_s"] == 9.0
    assert not TIMING.keys() & page_of_record(tmp_path).keys()


def test_a_number_of_the_result_does_not_hide_the_steps_own_time(tmp_path: Path) -> None:
    page = page_of_record(tmp_path, timing=TIMING, result={"compute_s": 7.0})
    assert (page["compute_s"], page["result_compute_s"]) == (120.0, 7.0)


def test_the_page_begins_with_what_came_out_and_ends_with_how(tmp_path: Path) -> None:
    write_bytes(f"{tmp_path}/plots/loss.png", b"a picture")
    result = {
        "loss": 2.5,
        "plots": ["plots/loss.png"],
        "scores": [{"task": "arc", "acc": 0.5}],
        "report": "report.html",
    }
    page = page_of_record(
        tmp_path, result=result, timing=TIMING, config={"seed": 0}, manifest={"files": 1, "bytes": 9}, user="ada"
    )
    names = list(page)
    assert names[:5] == ["report", "scores", "plot loss.png", "loss", "reused"]
    assert names[-3:] == ["config", "results", "made_by"]
    assert names.index("bytes") < names.index("compute_s") < names.index("dagster/uri") < names.index("log")


def test_a_report_is_a_link_in_a_bucket_and_a_path_on_a_disk(tmp_path: Path) -> None:
    def report_at(path: str) -> object:
        observed = Observed(path=path, record=Record.from_dict({"attempt": 1, "result": {"report": "a b.html"}}))
        return materialization_metadata(Produced(observed=observed, reused=True))["report"]

    assert report_at(str(tmp_path)) == dg.MetadataValue.path(f"{tmp_path}/a b.html")
    assert report_at("gs://bucket/x-1") == dg.MetadataValue.url(
        "https://storage.cloud.google.com/bucket/x-1/a%20b.html"
    )
    assert report_at("s3://bucket/x-1") == dg.MetadataValue.path("s3://bucket/x-1/a b.html")


def test_a_number_with_a_long_name_is_in_a_table_and_covers_nothing(tmp_path: Path) -> None:
    page = page_of_record(tmp_path, result={"kept": 7, "rejected_repetition/gopher_repetition_dup_line_frac": 3})
    assert page["kept"] == 7
    [row] = page["more numbers"].records  # type: ignore[attr-defined]
    assert dict(row.data) == {"value": 3, "name": "rejected_repetition/gopher_repetition_dup_line_frac"}


def test_who_computed_an_output_with_which_commit_and_in_which_run(tmp_path: Path) -> None:
    git = {"commit": "0123456789abcdef0123", "dirty": True}
    page = page_of_record(tmp_path, user="ada", host="worker-3", git=git, dagster_run_id="5b4f0a77")
    assert page["made_by"] == "ada on worker-3, commit 0123456789ab with changes"
    assert page["made_in"] == dg.MetadataValue.dagster_run("5b4f0a77")
    assert page_of_record(tmp_path, git="damaged")["made_by"] == "someone on an unknown machine"
    assert page_of_record(tmp_path, git={"commit": 7}, dagster_run_id=7)["made_in"] == dg.MetadataValue.dagster_run("7")


LOST = {
    "attempt": 1,
    "number": 1,
    "slices": ["a"],
    "hosts": ["10.0.0.1", "10.0.0.2"],
    "waited_s": 5.0,
    "ran_s": 100.0,
    "startup_s": 30.0,
    "kept_s": 50.0,
    "lost_s": 20.0,
    "resumed_from": None,
    "saved_step": 7,
    "cause": "preempted",
    "error": "its node died",
}
LAST = {**LOST, "number": 2, "slices": ["b"], "lost_s": 0.0, "resumed_from": 7, "cause": None, "error": None}
UNKNOWN = {**LOST, "number": 3, "ran_s": None, "startup_s": None, "kept_s": None, "lost_s": None}


def test_the_tries_on_slices_are_a_table_with_their_sums(tmp_path: Path) -> None:
    page = page_of_record(tmp_path, tries=[LOST, LAST, UNKNOWN])
    assert (page["slices_waited_s"], page["startup_s"], page["kept_s"], page["lost_s"]) == (15.0, 60.0, 100.0, 20.0)
    assert page["goodput"] == round(100 / 195, 4)
    lost, last, unknown = (row.data for row in page["tries"].records)  # type: ignore[attr-defined]
    assert (lost["try"], lost["end"], lost["from step"], lost["error"]) == (
        "1.1",
        "preempted",
        "beginning",
        "its node died",
    )
    assert (last["end"], last["from step"], last["slices"]) == ("returned", "7", "b")
    assert (unknown["end"], unknown["kept s"]) == ("lost with its job", "?")


def test_a_step_that_ran_on_no_slice_has_no_ledger(tmp_path: Path) -> None:
    assert not {"goodput", "tries", "kept_s"} & page_of_record(tmp_path).keys()


def test_what_is_wrong_with_an_output_is_on_top(tmp_path: Path) -> None:
    record = Record.from_dict({"attempt": 1, "result": {"loss": 2.5}})
    observed = Observed(path=str(tmp_path), record=record, match=Match.UNVERIFIED)
    assert next(iter(materialization_metadata(Produced(observed=observed, reused=True)))) == "unverified"
    write_bytes(f"{tmp_path}/{COMMIT}", b"{")
    damaged = Observed(path=str(tmp_path), record=Record.from_dict({"result": {"loss": 2.5}}))
    assert next(iter(materialization_metadata(Produced(observed=damaged, reused=True)))) == "damaged"
