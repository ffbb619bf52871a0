"""The entry of a training: what it costs by its own records, and what is not made up."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from speedrun_entries import STEP_TOKENS, store_training, training_rows

from marin_assets.stages.report.records import ReportError
from marin_assets.stages.report.speedruns.entry import MARINS_METRIC
from marin_assets.stages.report.speedruns.faults import faults_of
from marin_assets.stages.report.speedruns.hardware import DEVICES, PEAK
from marin_assets.stages.report.speedruns.speedrun import Author, WriteSpeedrunConfig, write_speedrun
from marin_assets.step.values import unwrap_versioned_value

MARINS_KEYS = {
    *("author", "description", "model_config", "train_config", "tokenized_dataset", "resources", "model_size"),
    *("total_tokens", "model_flops", "model_flops_per_token", "num_devices", "num_chips", "device_flops"),
    *("training_time", "training_hardware_flops", "run_completion_timestamp", "wandb_run_link"),
}


def parsed(text: bytes) -> dict[str, Any]:
    """The fields of a file by Marin's description of it alone."""
    [run] = json.loads(text)["runs"]
    info = run["run_info"]
    assert set(info) >= MARINS_KEYS
    assert set(info["author"]) == {"name", "affiliation", "url"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", info["run_completion_timestamp"])
    assert info["model_flops"] == pytest.approx(3 * info["model_flops_per_token"] * info["total_tokens"])
    return info


def written(training: str, output: Path, **fields: Any) -> dict[str, Any]:
    settings = {"author": Author(name="Ada"), "description": "A nano model.", "output_path": str(output)}
    config = WriteSpeedrunConfig(training_path=training, **{**settings, **fields})
    result = write_speedrun(unwrap_versioned_value(config))
    info = parsed((output / "speedrun_results.json").read_bytes())
    assert (result["value"], result["training_time_s"]) == (info[result["metric"]], info["training_time"])
    assert faults_of(info) == []
    return info


@pytest.mark.parametrize(
    ("pool", "chips", "peak"),
    [
        ("tpu_v4_8", 4, 275e12),
        ("tpu_v5p_32", 16, 459e12),
        ("tpu_v5litepod_8", 8, 197e12),
        ("tpu_v6e_8", 8, 918e12),
        ("gpu_H100", 8, 989e12),
        ("gpu_A100_80G", 2, 312e12),
    ],
)
def test_the_operations_of_the_hardware_are_seconds_by_chips_by_peak(
    pool: str, chips: int, peak: float, tmp_path: Path
) -> None:
    spent = {"wall_s": 1000.0, "device_s": 1000.0 * chips, "pool": pool, "attempts": 1, "unknown_attempts": 0}
    rows = training_rows(10, duration_s=0.5)
    info = written(store_training(tmp_path, rows=rows, spent=spent), tmp_path / "out")
    assert (info["num_chips"], info["device_flops"]) == (chips, peak)
    assert info["training_time"] == 8 * 0.5, "no waiting for data, no hook, no evaluation"
    assert info["training_hardware_flops"] == pytest.approx(4.0 * chips * peak)
    assert info["total_tokens"] == 10 * STEP_TOKENS


def test_each_step_counts_with_the_chips_that_it_ran_on(tmp_path: Path) -> None:
    rows = [*training_rows(10, **{PEAK: 4 * 275e12})[:5], *training_rows(10, **{PEAK: 8 * 275e12})[5:]]
    devices = {"kind": "TPU v4", "count": 8, "peak_flops": 275e12}
    info = written(store_training(tmp_path, rows=rows, result={DEVICES: devices}), tmp_path / "out")
    assert info["training_hardware_flops"] == pytest.approx(2.0 * 275e12 * (4 * 4 + 4 * 8))
    assert (info["num_chips"], info["device_flops"]) == (None, None)
    assert any("several numbers or kinds of chips" in note for note in info["notes"])


def test_a_chip_of_v3_has_two_devices_of_jax(tmp_path: Path) -> None:
    devices = {"kind": "TPU v3", "count": 8, "peak_flops": 61.5e12}
    rows = training_rows(10, **{PEAK: 8 * 61.5e12})
    info = written(store_training(tmp_path, rows=rows, result={DEVICES: devices}), tmp_path / "out")
    assert (info["num_devices"], info["num_chips"], info["device_flops"]) == (8, 4, 123e12)
    assert info["training_hardware_flops"] == pytest.approx(16.0 * 4 * 123e12)


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        ({"result": {DEVICES: {"kind": "cpu", "count": 1, "peak_flops": None}}}, "No peak of the device 'cpu'"),
        ({}, "names no accelerator with a peak"),
        ({"spent": {"pool": "gpu", "wall_s": 1.0, "device_s": 1.0}}, "names no accelerator with a peak"),
        (
            {"spent": {"pool": "tpu_v4_8", "wall_s": 1.0}, "tries": [{"devices": 4}, {"devices": 8}]},
            "ran on several numbers of chips, and its steps do not record which",
        ),
    ],
)
def test_what_is_not_known_is_null_with_a_sentence(record: Any, sentence: str, tmp_path: Path) -> None:
    info = written(store_training(tmp_path, **record), tmp_path / "out")
    assert (info["training_hardware_flops"], info["num_chips"], info["device_flops"]) == (None, None, None)
    assert any(sentence in note for note in info["notes"])


def test_chips_whose_peak_levanter_lacks_have_that_of_the_catalogue(tmp_path: Path) -> None:
    devices = {"kind": "TPU v2", "count": 8, "peak_flops": None}
    spent = {"pool": "tpu_v2_8", "wall_s": 10.0, "device_s": 40.0}
    info = written(store_training(tmp_path, result={DEVICES: devices}, spent=spent), tmp_path / "out")
    assert (info["num_chips"], info["device_flops"], info["resources"]["device"]["variant"]) == (4, 46e12, "v2-8")


def test_steps_without_a_peak_among_others_leave_the_sum_unknown(tmp_path: Path) -> None:
    rows = training_rows(10, **{PEAK: 4 * 275e12})
    del rows[4][PEAK]
    info = written(store_training(tmp_path, rows=rows), tmp_path / "out")
    assert info["training_hardware_flops"] is None
    assert any(note.startswith("1 of 8 steps ran on devices without a peak") for note in info["notes"])


def test_a_resumed_training_counts_each_step_once_and_states_how_often_it_began(tmp_path: Path) -> None:
    spent = {"wall_s": 10.0, "attempts": 2, "unknown_attempts": 1}
    resumed = store_training(tmp_path, "checkpoints/resumed", spent=spent, result={"resumed_from_step": 6})
    info = written(resumed, tmp_path / "a")
    straight = written(store_training(tmp_path, "checkpoints/straight"), tmp_path / "b")
    for name in ("training_time", "total_tokens", "model_flops", "timed_steps"):
        assert info[name] == straight[name]
    assert (info["starts"], info["resumed_from_step"]) == (3, 6)
    assert any("it began 3 times, the last from the checkpoint of step 6" in note for note in info["notes"])
    assert (straight["starts"], straight["resumed_from_step"]) == (1, None)


def test_the_tries_on_slices_are_starts_too(tmp_path: Path) -> None:
    spent = {"pool": "tpu_v4_8", "wall_s": 1.0, "attempts": 1, "unknown_attempts": 0}
    tries = [{"devices": 4, "resumed_from": None}, {"devices": 4, "resumed_from": 3}, {"devices": 4, "resumed_from": 6}]
    info = written(
        store_training(tmp_path, spent=spent, tries=tries, result={"resumed_from_step": 6}), tmp_path / "out"
    )
    assert (info["starts"], info["num_chips"]) == (3, 4)


def test_the_metric_is_chosen_and_stored_with_its_name(tmp_path: Path) -> None:
    training = store_training(tmp_path)
    assert written(training, tmp_path / "a")["eval/bpb"] == 1.25
    info = written(training, tmp_path / "b", metric="eval/prose/bpb")
    assert (info["metric"], info["eval/prose/bpb"]) == ("eval/prose/bpb", 1.5)
    with pytest.raises(ReportError, match="has no metric 'eval/bits'"):
        written(training, tmp_path / "c", metric="eval/bits")


def test_an_evaluation_of_this_very_model_may_be_ranked(tmp_path: Path) -> None:
    training = store_training(tmp_path)
    for name, reads in (("perplexity/nano", training), ("perplexity/other", f"{tmp_path}/checkpoints/other-1")):
        path = tmp_path / f"{name}-abc123"
        path.mkdir(parents=True)
        record = {"name": name, "prefix": str(tmp_path), "output_path": str(path), "dependencies": [reads]}
        (path / ".executor_info").write_text(json.dumps({**record, "result": {"sets": {"c4": {"bpb": 1.1}}}}))
    evaluation = f"{tmp_path}/perplexity/nano-abc123"
    info = written(training, tmp_path / "a", metric="sets.c4.bpb", evaluation_path=evaluation)
    assert (info["metric"], info["sets.c4.bpb"]) == ("sets.c4.bpb", 1.1)
    with pytest.raises(ReportError, match="does not read the training"):
        written(training, tmp_path / "b", metric="sets.c4.bpb", evaluation_path=f"{tmp_path}/perplexity/other-abc123")


def test_a_training_of_marins_is_an_entry_without_times(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints/llama-0a1b2c"
    path.mkdir(parents=True)
    (path / ".executor_info").write_text(json.dumps({"name": "checkpoints/llama", "config": {}}))
    summary = {
        "parameter_count": 10**8,
        "throughput/total_tokens": 10**9,
        "throughput/total_gflops": 6e8,
        MARINS_METRIC: 1.2,
        "_timestamp": 1775790390,
    }
    (path / "tracker_metrics.jsonl").write_text(json.dumps({"config": {}, "summary": summary}))
    info = written(str(path), tmp_path / "out", metric=MARINS_METRIC)
    assert (info[MARINS_METRIC], info["model_flops"], info["training_time"]) == (1.2, 6e17, None)


def test_it_is_inert_to_the_place_and_repeats_its_bytes(tmp_path: Path) -> None:
    training = store_training(tmp_path)
    info = written(training, tmp_path / "a")
    written(training, tmp_path / "b")
    text = (tmp_path / "a/speedrun_results.json").read_bytes()
    assert text == (tmp_path / "b/speedrun_results.json").read_bytes()
    assert str(tmp_path) not in text.decode()
    assert info["tokenized_dataset"] == "<prefix>/tokenized/prose-123456"
    assert "steps_per_hf_export" in info["train_config"]


@pytest.mark.parametrize(
    ("rows", "fields", "sentence"),
    [
        ([{"step": 3, "train/loss": 4.0}], {}, "has not logged 'throughput/total_tokens'"),
        (None, {"goal": "least"}, "goal is 'least', expected one of"),
        (None, {"author": Author(name=" ")}, "The author of a speedrun has no name."),
        (None, {"metric": ""}, "The metric of a speedrun has no name."),
    ],
)
def test_a_mistake_is_one_sentence(rows: Any, fields: Any, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=sentence):
        written(store_training(tmp_path, rows=rows), tmp_path / "out", **fields)


def test_the_names_of_the_metrics_are_those_of_a_training() -> None:
    from marin_assets.stages.train.metrics import metrics

    assert metrics.PEAK == PEAK
    assert {"throughput/duration", "throughput/total_tokens", "throughput/total_gflops"} <= set(metrics.KEPT)


def test_a_damaged_file_of_metrics_is_one_sentence(tmp_path: Path) -> None:
    training = store_training(tmp_path)
    (Path(training) / "metrics.jsonl").write_text('{"step": 2}\n{"st')
    with pytest.raises(ReportError, match="is damaged"):
        written(training, tmp_path / "out")
