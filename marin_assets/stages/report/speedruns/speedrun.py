"""Write the speedrun entry of a training: its cost, and the value of its model, with the keys of Marin's speedruns.

In:  the output of a training: its record and `metrics.jsonl`, or Marin's `tracker_metrics.jsonl`; the output of an
     evaluation of its model, if the ranked metric is that's.
Out: `speedrun_results.json` (`entry.py`), a file that can be submitted as it is. Nothing is downloaded.

model_flops               3 x model_flops_per_token x total_tokens, by Levanter's count of the model's forward pass
training_time             the sum of the durations of the steps: no evaluation, no checkpoint, no waiting for data.
                          Levanter does not log the first two steps, which compile; the first after a resumption counts
training_hardware_flops   the same sum, of the duration x the peak of all chips (`hardware.py`)

A step that was computed twice, because a training was killed and continued from a checkpoint, counts once.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from marin_assets.stages.report.compare_runs import GOALS, METRICS, value_of
from marin_assets.stages.report.records import ReportError, StepRecord, read_records
from marin_assets.stages.report.speedruns.entry import BACKWARD, RESULTS, TIME, Entry, results_file
from marin_assets.stages.report.speedruns.faults import faults_of
from marin_assets.stages.report.speedruns.hardware import DURATION, PEAK, Hardware, hardware_of
from marin_assets.stages.report.speedruns.read import TRACKED, info_of_tracked
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.catalogue import find_slice_type
from marin_resources.hardware.resources import Resources
from marin_resources.scrub.private_values import recorded_values
from marin_resources.scrub.scrubber import Scrubber
from marin_resources.storage.files import read_bytes, write_bytes
from marin_resources.storage.paths import join
from marin_resources.types.near_names import expected_one_of

KINDS = ("json",)

TOKENS, GFLOPS = "throughput/total_tokens", "throughput/total_gflops"
OF_A_MACHINE = ("model", "components", "tokenizer_path", "output_path", "compilation_cache_dir", "trackers")
"""Fields of a training's config that are not in `train_config`."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Author:
    name: str
    affiliation: str = ""
    url: str = ""


@dataclass(frozen=True, kw_only=True)
class WriteSpeedrunConfig:
    training_path: str
    author: Author
    """versioned()"""
    description: str
    """A sentence about what is special; versioned()."""
    output_path: str = THIS_OUTPUT_PATH
    metric: str = versioned("eval/bpb")
    """The metric to rank by: one that the training has logged, whose last value counts, or a number of its result, or
    with `evaluation_path` of that result, "sets.prose.bits_per_byte"."""
    goal: str = versioned("min")
    """"min" or "max"."""
    evaluation_path: str | None = None
    label: str | None = versioned(None)
    """The recipe, by which tables group seeds and sizes; None: the name without its last part."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def write_speedrun(config: WriteSpeedrunConfig) -> dict[str, Any]:
    """Write the entry of a training.

    Returns metric, value, model_flops, hardware_flops and mfu (None where they are not known), training_time_s, tokens,
    parameters, starts, resumed_from_step, notes and results (the file). Raises ReportError for a training without a
    count of operations, an unknown metric, and numbers that cannot be.
    """
    _check(config)
    training = read_records({"training": config.training_path})["training"]
    evaluation = None
    if config.evaluation_path is not None:
        evaluation = read_records({"evaluation": config.evaluation_path})["evaluation"]
        _require_of(training, evaluation)
    info = {
        **measure(training, config.metric, config.goal, evaluation),
        "author": asdict(config.author),
        "description": config.description,
        "label": config.label,
    }
    if faults := faults_of(info):
        raise ReportError(f"The training at {training.path!r} is no speedrun: {faults[0]}")
    write_bytes(join(config.output_path, RESULTS), results_file([info]))
    entry = Entry(name=training.name, info=info)
    for note in info["notes"]:
        log.info("%s", note)
    return {
        "metric": config.metric,
        "value": entry.value,
        "model_flops": entry.model_flops,
        "hardware_flops": entry.hardware_flops,
        "mfu": entry.mfu,
        "training_time_s": entry.time_s,
        "tokens": entry.tokens,
        "parameters": entry.model_size,
        "starts": info.get("starts"),
        "resumed_from_step": info.get("resumed_from_step"),
        "notes": info["notes"],
        "results": RESULTS,
    }


def measure(
    training: StepRecord, metric: str, goal: str = "min", evaluation: StepRecord | None = None
) -> dict[str, Any]:
    """Return the fields of a `run_info` that a training has by itself. Raises ReportError for an unknown metric, and a
    training that has not logged its tokens and operations."""
    if training.has(METRICS) or not training.has(TRACKED):
        info = _of_metrics(training)
        info[metric] = value_of(evaluation or training, metric)
    else:
        info = info_of_tracked(read_bytes(join(training.path, TRACKED)), join(training.path, TRACKED))
        if evaluation is not None:
            info[metric] = value_of(evaluation, metric)
    return {**info, "metric": metric, "goal": goal}


def _of_metrics(training: StepRecord) -> dict[str, Any]:
    rows = _rows(training)
    counted = next((row for row in reversed(rows) if TOKENS in row and GFLOPS in row), None)
    if counted is None:
        raise ReportError(
            f"The output {training.path!r} has not logged {TOKENS!r} and {GFLOPS!r}, expected those of a training. "
            "Pass a step that trains a model whose operations Levanter counts."
        )
    scrub = Scrubber(recorded_values([training.record]))
    recorded = training.record.config if isinstance(training.record.config, Mapping) else {}
    config = {name: scrub.json(value) for name, value in recorded.items()}
    result, hardware = training.result, hardware_of(training, rows)
    tokens = int(result.get("tokens_seen") or counted[TOKENS])
    of_a_token = counted[GFLOPS] * 1e9 / counted[TOKENS] / BACKWARD
    durations = [row[DURATION] for row in rows if DURATION in row]
    starts = _starts(training)
    return {
        "model_config": config.get("model") or {},
        "train_config": _train_config(config),
        "tokenized_dataset": _token_sets(config),
        "resources": {"device": {"variant": hardware.kind}, "slice_count": _slices(hardware)},
        "model_size": result.get("parameters"),
        "total_tokens": tokens,
        "model_flops": BACKWARD * of_a_token * tokens,
        "model_flops_per_token": of_a_token,
        "num_devices": hardware.devices,
        "num_chips": hardware.chips,
        "device_flops": hardware.chip_flops,
        "training_time": math.fsum(durations) if durations else None,
        "training_hardware_flops": hardware.flops,
        "run_completion_timestamp": _completed(training),
        "wandb_run_link": (result.get("links") or {}).get("wandb"),
        "steps": result.get("steps"),
        "timed_steps": len(durations),
        "starts": starts,
        "resumed_from_step": result.get("resumed_from_step"),
        "notes": list(_notes(training, hardware, len(durations), starts)),
    }


def _rows(training: StepRecord) -> list[dict[str, Any]]:
    """The rows of the metrics with what is needed alone: a training has millions of steps."""
    names = (DURATION, PEAK, TOKENS, GFLOPS)
    try:
        rows = training.rows(METRICS) if training.has(METRICS) else ()
        return [{name: row[name] for name in names if name in row} for row in rows]
    except (ValueError, TypeError) as error:
        raise ReportError(
            f"{join(training.path, METRICS)!r} is damaged ({error}). Compute the training again."
        ) from None


def _notes(training: StepRecord, hardware: Hardware, timed: int, starts: int) -> Sequence[str]:
    steps, resumed = training.result.get("steps"), training.result.get("resumed_from_step")
    notes = [hardware.missing] if hardware.missing else []
    if steps is not None and timed < steps:
        notes.append(f"{steps - timed:,} of {steps:,} steps have no duration: the first two compile, and log none.")
    if resumed is not None:
        notes.append(
            f"The training was resumed: it began {starts:,} time{'s' * (starts != 1)}, the last from the checkpoint of "
            f"step {resumed:,}. Each step counts once; the first after a resumption has the time of compiling in it."
        )
    return notes


def _starts(training: StepRecord) -> int:
    """The number of times that it began: of its attempts, and of their tries on slices."""
    spent = training.record.spent
    attempts = (spent.attempts or 1) + (spent.unknown_attempts or 0)
    return max(attempts, len(training.tries))


def _train_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config of the training without its model and what is of a machine. It has the length of the sequences and
    the schedule of batches where Marin's has them."""
    kept = {name: value for name, value in config.items() if name not in OF_A_MACHINE}
    loop = config.get("loop") or {}
    return {
        **kept,
        "train_batch_size": loop.get("batch_schedule") or config.get("train_batch_size"),
        "train_seq_len": loop.get("train_seq_len"),
    }


def _token_sets(config: Mapping[str, Any]) -> Any:
    """The path of the tokenized set, or those of several."""
    sets = list((config.get("components") or {}).values())
    if isinstance(mixture := config.get("mixture"), Mapping):
        for member in (mixture.get("components") or {}).values():
            sets += member.values() if isinstance(member, Mapping) else [member]
    return sets[0] if len(sets) == 1 else sets


def _slices(hardware: Hardware) -> int | None:
    slice_type = find_slice_type(hardware.kind) if hardware.kind else None
    return hardware.chips // slice_type.chips if slice_type and hardware.chips else None


def _completed(training: StepRecord) -> str | None:
    at = training.record.finished_at
    return datetime.fromisoformat(at).strftime(TIME) if isinstance(at, str) else None


def _require_of(training: StepRecord, evaluation: StepRecord) -> None:
    """Raise ReportError for an evaluation of another model, whose value would be ascribed to this training."""
    roots = {training.path, training.own_path}
    if not any(path == root or path.startswith(f"{root}/") for path in evaluation.dependencies for root in roots):
        raise ReportError(
            f"The evaluation {evaluation.path!r} does not read the training {training.path!r}. Pass an evaluation of "
            "its model."
        )


def _check(config: WriteSpeedrunConfig) -> None:
    if config.goal not in GOALS:
        raise ReportError(f"goal is {config.goal!r}, {expected_one_of(config.goal, GOALS)}")
    if not config.author.name.strip():
        raise ReportError("The author of a speedrun has no name. Pass author=Author(name='…').")
    if not config.metric.strip():
        raise ReportError("The metric of a speedrun has no name. Pass metric='eval/bpb'.")
