"""The asset check "complete": names and sizes, on a disk and on GCS."""

from __future__ import annotations

import dagster as dg
import pytest
from toy_steps import toy

from marin_assets import expect
from marin_assets.assets.checks import check_results
from marin_resources.storage.files import remove, remove_folder, write_bytes
from marin_resources.storage.manifest.manifest import NAME
from marin_resources.storage.output.record import NAME as RECORD
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_resources.types.output import Observed, Output
from marin_resources.types.record import Record


@pytest.fixture
def path(disk_or_gcs_prefix: str) -> str:
    store = Store(disk_or_gcs_prefix)
    claim = store.claim(Output(name="x", version="1", identity="i"), attempt=1, resumable=False, run_id=None)
    for name in ("a.txt", "b.txt", "worker.log"):
        write_bytes(join(claim.path, name), name.encode())
    store.publish(claim, {}, {})
    return claim.path


def complete(path: str) -> dg.AssetCheckResult:
    [result] = check_results(toy("x"), dg.AssetKey("x"), Observed(path=path))
    return result


def shown(result: dg.AssetCheckResult, name: str) -> object:
    return result.metadata[name].value


def test_an_output_as_it_was_published_is_complete(path: str) -> None:
    result = complete(path)
    assert result.passed
    assert (shown(result, "files"), shown(result, "bytes"), shown(result, "value")) == (2, 10, "complete")


def test_missing_extra_and_resized_files_are_named(path: str) -> None:
    write_bytes(join(path, "c.txt"), b"extra")
    assert shown(complete(path), "value") == "1 extra: extra 'c.txt': expected nothing, found 5 bytes"
    write_bytes(join(path, "a.txt"), b"longer than before")
    remove(join(path, "b.txt"))
    result = complete(path)
    assert (result.passed, shown(result, "expected")) == (False, "the files of its manifest (2)")
    assert shown(result, "value") == (
        "1 resized, 1 missing, 1 extra: resized 'a.txt': expected 5 bytes, found 18 bytes; "
        "missing 'b.txt': expected 5 bytes, found nothing; extra 'c.txt': expected nothing, found 5 bytes"
    )


def test_of_many_findings_the_first_are_named(path: str) -> None:
    for number in range(9):
        write_bytes(join(path, f"more-{number}"), b"x")
    found = str(shown(complete(path), "value"))
    assert found.startswith("9 extra: extra 'more-0'")
    assert found.endswith("and 4 more; `marin verify` names all")


def test_the_check_says_that_it_compares_no_bytes(path: str) -> None:
    write_bytes(join(path, "a.txt"), b"A.TXT")
    result = complete(path)
    assert result.passed
    assert shown(result, "compared") == "names and sizes; `marin verify` compares the bytes"


def test_a_damaged_manifest_fails_the_check_and_not_the_run(path: str) -> None:
    write_bytes(join(path, NAME), b"{")
    result = complete(path)
    assert not result.passed
    assert "is not JSON" in str(shown(result, "value"))


def test_an_output_of_marins_passes_and_the_check_says_why(path: str) -> None:
    remove(join(path, NAME))
    assert not complete(path).passed, "the record names a manifest"
    remove(join(path, RECORD))
    remove_folder(join(path, ".marin"))
    result = complete(path)
    assert (result.passed, shown(result, "compared")) == (
        True,
        "no manifest exists to compare with, as Marin writes none",
    )


def test_what_marin_has_not_recorded_is_a_warning_and_not_a_failure(path: str) -> None:
    step = toy("x", expectations=[expect("value", at_least=1)])
    [_, check] = check_results(
        step, dg.AssetKey("x"), Observed(path=path, record=Record.from_dict({"name": "x", "config": {}}))
    )
    assert (check.passed, check.severity, shown(check, "value")) == (False, dg.AssetCheckSeverity.WARN, "not recorded")
    [_, missing] = check_results(step, dg.AssetKey("x"), Observed(path=path, record=Record.from_dict({"result": {}})))
    assert (missing.passed, missing.severity) == (False, dg.AssetCheckSeverity.ERROR)


def test_a_check_that_fails_is_one_sentence_with_what_was_expected_and_what_came(path: str) -> None:
    step = toy("x", expectations=[expect("pages", at_least=50)])
    for result, sentence in (
        ({"pages": 24}, "Failed: expected pages at least 50, got 24."),
        ({"pages": 1 / 3}, "Failed: expected pages at least 50, got 0.333333."),
        ({}, "Failed: expected pages at least 50, got missing."),
        ({"pages": 50}, None),
    ):
        record = Record.from_dict({"result": result})
        [_, check] = check_results(step, dg.AssetKey("x"), Observed(path=path, record=record))
        assert check.description == sentence
