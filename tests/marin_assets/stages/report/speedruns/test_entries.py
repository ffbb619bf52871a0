"""Files of entries: which are right, what is wrong in one, and that none is changed by reading and writing it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from speedrun_entries import PEAK, marins_folder, run_info, write_results

from marin_assets.stages.report.speedruns.entry import MARINS_METRIC, Entry, results_file
from marin_assets.stages.report.speedruns.faults import faults_of
from marin_assets.stages.report.speedruns.read import SpeedrunError, duplicates, read_entries


def test_ninety_six_entries_of_marins_make_the_round_trip(tmp_path: Path) -> None:
    infos = marins_folder(tmp_path / "theirs")
    reads = read_entries(str(tmp_path / "theirs"))
    assert {read.name: read.info for read in reads} == infos
    assert not [read.faults for read in reads if read.faults]
    for read in reads:
        write_results(tmp_path / "ours" / read.name, [read.info])
    assert {read.name: read.info for read in read_entries(str(tmp_path / "ours"))} == infos
    assert reads[0].entry.label == "recipe_00"
    assert list(duplicates(reads)) == []


def test_older_files_of_marins_lack_fields_and_are_right() -> None:
    older = run_info(resources={"tpu_type": "v5p-32", "slice_count": 1})
    for name in ("num_devices", "num_chips", "device_flops", "model_flops_per_token"):
        del older[name]
    assert faults_of(older) == []
    gpu = run_info(
        resources={"accelerator_type": "H200", "gpu_count": 1},
        num_devices=None,
        num_chips=1,
        device_flops=989.5e12,
        training_hardware_flops=1595.0118 * 989.5e12 * 4,
        training_time=1595.0118 * 4,
    )
    assert faults_of(gpu) == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"author": None}, "'author' is null, expected an object"),
        ({"author": {"url": "x"}}, "'author' has the name None, expected a text. Name who submits it."),
        ({"model_size": "154M"}, "'model_size' is '154M', expected a whole number."),
        ({"model_size": True}, "'model_size' is True, expected a whole number."),
        ({"total_tokens": 1.5}, "'total_tokens' is 1.5, expected a whole number."),
        ({"total_tokens": 0}, "'total_tokens' is 0, expected a finite number above 0."),
        ({"model_flops": 10**400}, "expected a number."),
        ({"total_tokens": 10**101}, "expected a whole number."),
        ({"training_time": float("inf")}, "'training_time' is inf, expected a number."),
        ({"training_time": float("nan")}, "'training_time' is nan, expected a finite number above 0."),
        ({"training_time": None}, "'training_time' is null, expected a number, or null with a sentence"),
        ({"training_time": -4.0}, "'training_time' is -4.0, expected a finite number above 0."),
        ({"notes": "on a CPU"}, "'notes' is 'on a CPU', expected a list."),
        ({"notes": [3]}, "'notes' is [3], expected a list of texts."),
        ({"goal": "low"}, "'goal' is 'low', expected 'min' or 'max'."),
        ({"metric": "eval/bpb"}, "'eval/bpb' is missing, which 'metric' names."),
        ({MARINS_METRIC: None}, f"'{MARINS_METRIC}' is None, expected a finite number."),
        ({MARINS_METRIC: 0.0}, "a loss is above 0."),
        ({"training_hardware_flops": 1e18, "training_time": 1e18 / 16 / PEAK}, "(MFU) cannot be above 1."),
        ({"total_tokens": 3 * 10**9}, "'model_flops' is 1.777e+18, and 3 x model_flops_per_token x total_tokens is"),
        (
            {"model_size": 10**14},
            "6 x model_size x total_tokens is 1.56e+24: they differ by a factor of more than 100.",
        ),
        (
            {"train_config": {"num_train_steps": 10, "train_batch_size": 128}},
            "10 steps of 128 sequences of 4,096 tokens",
        ),
        ({"num_chips": 32}, "'num_chips' is 32, and 1 x v5p-32 of 16 chips are in resources. That counts cores."),
        ({"num_chips": 7}, "'num_chips' is 7, and 1 x v5p-32 of 16 chips are in resources."),
        ({"device_flops": 989e12}, "the peak of one chip of a v5p-32 is 4.59e+14 in bfloat16."),
        ({"training_hardware_flops": 1.65e19}, "training_time x num_chips x device_flops is 1.171e+19."),
        ({"run_completion_timestamp": "2026-04-10"}, "expected a time of the form"),
        ({"run_completion_timestamp": "2999-01-01 00:00:00 UTC"}, "which has not come yet."),
    ],
)
def test_a_fault_is_a_sentence(changes: dict[str, Any], sentence: str) -> None:
    faults = faults_of(run_info(**changes))
    assert any(sentence in fault for fault in faults), faults


@pytest.mark.parametrize(
    "name", ["author", "description", "train_config", "total_tokens", "training_time", MARINS_METRIC]
)
def test_a_missing_key_is_named(name: str) -> None:
    info = run_info()
    del info[name]
    assert [fault for fault in faults_of(info) if repr(name) in fault and "is missing" in fault]


def test_odd_values_beside_the_numbers_are_passed_over() -> None:
    odd = {"tpu_type": "v5p-32", "slice_count": "one", "replicas": [4], "device": 5}
    config = {"num_train_steps": 10**400, "train_batch_size": "16", "train_seq_len": -1}
    assert faults_of(run_info(resources=odd, train_config=config, model_config={"max_seq_len": {}})) == []


def test_numbers_that_were_not_measured_are_null_with_a_sentence() -> None:
    unknown = dict.fromkeys(("num_devices", "num_chips", "device_flops", "training_hardware_flops"))
    assert len(faults_of(run_info(**unknown))) == 1
    assert faults_of(run_info(**unknown, notes=["A CPU has no peak on record."])) == []


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "is not JSON"),
        (b'{"runs": [', "is not JSON"),
        (b"[]", "is not a JSON object"),
        (b"{}", "It has no entry, expected"),
        (b'{"runs": []}', "It has no entry, expected"),
        (b'{"runs": [{"run": 1}]}', "It has no entry, expected"),
        (b'{"runs": [{"run_info": 5}]}', "run_info is 5, expected an object."),
        (b'{"format_version": 2, "runs": []}', "format version 2 and this software knows up to 1"),
        (b"[" * 100_000, "nested"),
    ],
)
def test_a_damaged_file_is_one_fault_and_hides_no_other(data: bytes, sentence: str, tmp_path: Path) -> None:
    write_results(tmp_path / "right", [run_info()])
    (tmp_path / "wrong").mkdir()
    (tmp_path / "wrong/speedrun_results.json").write_bytes(data)
    right, wrong = read_entries(str(tmp_path))
    assert (right.faults, len(wrong.faults)) == ((), 1)
    assert sentence in wrong.faults[0]


def test_a_folder_without_entries_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SpeedrunError, match=r"has no file 'speedrun_results.json', expected one below it"):
        read_entries(str(tmp_path))
    with pytest.raises(SpeedrunError, match="does not exist"):
        read_entries(f"{tmp_path}/nowhere")


def test_several_runs_in_one_file_have_numbers_and_one_file_has_the_name_of_its_folder(tmp_path: Path) -> None:
    file = write_results(tmp_path / "mine", [run_info(), run_info(**{MARINS_METRIC: 1.17})])
    assert [read.name for read in read_entries(str(tmp_path))] == ["mine#1", "mine#2"]
    write_results(tmp_path / "mine", [run_info()])
    assert [read.name for read in read_entries(str(file))] == ["mine"]


def test_the_same_run_twice_is_named(tmp_path: Path) -> None:
    write_results(tmp_path / "a", [run_info()])
    write_results(tmp_path / "b", [run_info(description="other words")])
    [(read, sentence)] = duplicates(read_entries(str(tmp_path)))
    assert (read.name, sentence) == ("b", "it is the run of 'a': all of its numbers are equal. Remove one of them.")


def test_marins_copy_of_what_was_logged_is_an_entry_without_times(tmp_path: Path) -> None:
    summary = {
        "parameter_count": 154_147_328,
        "throughput/total_tokens": 2_599_944_192,
        "throughput/total_gflops": 1.777e9,
        "throughput/duration": 0.3,
        MARINS_METRIC: 1.18,
        "eval/paloma/macro_bpb": 1.3,
        "_timestamp": 1775790390.5,
    }
    config = {"model": {"hidden_dim": 512, "max_seq_len": 4096}, "trainer": {"train_batch_size": 128}}
    path = tmp_path / "checkpoints/llama-0a1b2c/tracker_metrics.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"config": config, "summary": summary}) + "\n")
    [read] = read_entries(str(tmp_path))
    assert read.faults == ()
    entry = read.entry
    assert (entry.name, entry.value, entry.tokens) == ("checkpoints/llama-0a1b2c", 1.18, 2_599_944_192)
    assert (entry.model_flops, entry.time_s, entry.hardware_flops) == (1.777e18, None, None)
    assert entry.info["model_flops_per_token"] == pytest.approx(1.777e18 / 3 / 2_599_944_192)
    assert entry.info["run_completion_timestamp"] == "2026-04-10 03:06:30 UTC"
    write_results(tmp_path / "again", [read.info])
    assert read_entries(str(tmp_path / "again"))[0].info == read.info


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"config": {}}',
        '{"summary": 5}',
        '{"summary": {"throughput/total_tokens": "many"}}',
        '{"summary": {"throughput/total_gflops": {}, "throughput/total_tokens": 4}}',
        '{"summary": {"_timestamp": 1e300}}',
        '{"summary": {}, "config": {"trainer": [1]}}',
        "[" * 100_000,
    ],
)
def test_what_is_no_copy_of_marins_is_a_fault(text: str, tmp_path: Path) -> None:
    (tmp_path / "tracker_metrics.jsonl").write_text(text)
    [read] = read_entries(str(tmp_path))
    assert read.faults


def test_equal_entries_are_equal_bytes() -> None:
    info = run_info()
    assert results_file([info]) == results_file([dict(reversed(info.items()))])


def test_a_label_is_that_of_the_file_or_the_folder() -> None:
    assert Entry(name="a/b/130m", info=run_info()).label == "a/b"
    assert Entry(name="llama", info=run_info()).label == "llama"
    assert Entry(name="a/b", info=run_info(label="AdamC")).label == "AdamC"
