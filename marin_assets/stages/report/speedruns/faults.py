"""Faults of a speedrun entry: keys that are missing or of another type, and numbers that cannot be, or do not fit.

In:  the fields of a `run_info`.   Out: a sentence for each fault. Read: nothing.

Fields that older files of Marin's lack are checked where they are. `null` for what was not measured, such as the peak
of a CPU, wants a sentence in `notes`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from marin_assets.stages.report.speedruns.entry import BACKWARD, MARINS_METRIC, TIME, time_of
from marin_resources.hardware.catalogue import find_gpu_type, find_slice_type

NOUNS = {str: "a text", int: "a whole number", float: "a number", dict: "an object", list: "a list"}
REQUIRED: Mapping[str, type] = {
    "author": dict,
    "description": str,
    "model_config": dict,
    "train_config": dict,
    "model_size": int,
    "total_tokens": int,
    "model_flops": float,
    "training_time": float,
    "training_hardware_flops": float,
    "run_completion_timestamp": str,
}
OPTIONAL: Mapping[str, type] = {
    "model_flops_per_token": float,
    "num_devices": int,
    "num_chips": int,
    "device_flops": float,
    "wandb_run_link": str,
    "metric": str,
    "goal": str,
    "label": str,
    "notes": list,
    "steps": int,
    "timed_steps": int,
    "starts": int,
    "resumed_from_step": int,
}
MEASURED = ("training_time", "training_hardware_flops", "num_devices", "num_chips", "device_flops")
MAY_BE_NULL = (*MEASURED, "run_completion_timestamp")
"""With a sentence in `notes`."""
POSITIVE = ("model_size", "total_tokens", "model_flops", "model_flops_per_token", *MEASURED)
LARGEST = 1e100
"""The product of three larger numbers is no float."""
GOALS = ("min", "max")
FITS = 0.01
"""Relative difference up to which a product fits: files have numbers of 3 digits or more."""
NEAR = 100.0
"""The factor between model_flops and 6 x parameters x tokens from which one of them must be wrong: few parameters of a
mixture of experts compute, and in a small model most are an embedding's, which does not."""


def faults_of(info: Any) -> list[str]:
    """The sentences of all faults, in the order of the fields; none of an entry that is right."""
    if not isinstance(info, Mapping):
        return [f"run_info is {_shown(info)}, expected an object. Write one entry of a training there."]
    wrong = [*_types(info), *_metric(info)]
    if wrong:
        return wrong
    return [*_impossible(info), *_products(info), *_devices(info), *_date(info)]


def _types(info: Mapping[str, Any]) -> Iterator[str]:
    for name, kind in REQUIRED.items():
        if name not in info:
            yield f"{name!r} is missing, expected {NOUNS[kind]}. Add it."
    for name, kind in {**REQUIRED, **OPTIONAL}.items():
        value = info.get(name)
        if value is None:
            if name in REQUIRED and name in info and not (name in MAY_BE_NULL and info.get("notes")):
                more = ", or null with a sentence of the reason in 'notes'" if name in MAY_BE_NULL else ""
                yield f"{name!r} is null, expected {NOUNS[kind]}{more}."
        elif not _is_a(value, kind):
            yield f"{name!r} is {_shown(value)}, expected {NOUNS[kind]}."
    author = info.get("author")
    if isinstance(author, dict) and not (isinstance(author.get("name"), str) and author["name"].strip()):
        yield f"'author' has the name {_shown(author.get('name'))}, expected a text. Name who submits it."
    if isinstance(info.get("notes"), list) and not all(isinstance(note, str) for note in info["notes"]):
        yield f"'notes' is {_shown(info['notes'])}, expected a list of texts."


def _metric(info: Mapping[str, Any]) -> Iterator[str]:
    name = info.get("metric") or MARINS_METRIC
    goal = info.get("goal")
    if isinstance(goal, str) and goal not in GOALS:
        yield f"'goal' is {goal!r}, expected 'min' or 'max'."
    if not isinstance(name, str):
        return
    if name not in info:
        how = "which 'metric' names" if info.get("metric") else "which is the metric without a 'metric'"
        yield f"{name!r} is missing, {how}. Add its value, or name another key in 'metric'."
    elif not _is_a(info[name], float) or not math.isfinite(info[name]):
        yield f"{name!r} is {_shown(info[name])}, expected a finite number."
    elif name.endswith(("bpb", "bits_per_byte", "loss")) and info[name] <= 0:
        yield f"{name!r} is {info[name]!r}, and a loss is above 0. Correct it."


def _impossible(info: Mapping[str, Any]) -> Iterator[str]:
    for name in POSITIVE:
        value = info.get(name)
        if value is not None and not (0 < value < math.inf):
            yield f"{name!r} is {value!r}, expected a finite number above 0."
    model, hardware = info["model_flops"], info["training_hardware_flops"]
    if _both(model, hardware) and model > hardware:
        yield (
            f"'model_flops' {model:.4g} is {model / hardware:.3g} times 'training_hardware_flops' {hardware:.4g}: the "
            "share of the peak (MFU) cannot be above 1. Count the time of all steps, and the peak of all chips."
        )


def _products(info: Mapping[str, Any]) -> Iterator[str]:
    tokens, flops, of_a_token = info["total_tokens"], info["model_flops"], info.get("model_flops_per_token") or 0
    if _both(tokens, flops, of_a_token) and not _fits(flops, BACKWARD * of_a_token * tokens):
        yield (
            f"'model_flops' is {flops:.4g}, and {BACKWARD} x model_flops_per_token x total_tokens is "
            f"{BACKWARD * of_a_token * tokens:.4g}. Correct one of them."
        )
    expected = 6.0 * info["model_size"] * tokens
    if _both(flops, expected) and not 1 / NEAR < flops / expected < NEAR:
        yield (
            f"'model_flops' is {flops:.4g}, and 6 x model_size x total_tokens is {expected:.4g}: they differ by a "
            f"factor of more than {NEAR:g}. Correct one of them."
        )
    config = info["train_config"]
    steps, batch, length = (config.get(name) for name in ("num_train_steps", "train_batch_size", "train_seq_len"))
    length = length or info["model_config"].get("max_seq_len") or info["model_config"].get("seq_len")
    are_counts = all(_is_a(number, int) and number > 0 for number in (steps, batch, length))
    if are_counts and not _fits(tokens, steps * batch * length):
        yield (
            f"'total_tokens' is {tokens:,}, and {steps:,} steps of {batch:,} sequences of {length:,} tokens are "
            f"{steps * batch * length:,}. Correct one of them."
        )


def _devices(info: Mapping[str, Any]) -> Iterator[str]:
    kind = accelerator_of(info)
    slice_type, gpu = (find_slice_type(kind), find_gpu_type(kind)) if kind else (None, None)
    chips, peak, time_s, hardware = (
        info.get(name) or 0 for name in ("num_chips", "device_flops", "training_time", "training_hardware_flops")
    )
    if slice_type is not None and chips:
        slices = _slices(info["resources"], slice_type.hosts)
        if chips != slices * slice_type.chips:
            cores = ". That counts cores" if chips == 2 * slices * slice_type.chips else ""
            yield f"'num_chips' is {chips}, and {slices} x {kind} of {slice_type.chips} chips are in resources{cores}."
    tflops = slice_type.bf16_tflops if slice_type else gpu.bf16_tflops if gpu else None
    if peak and tflops is not None and not _fits(peak, tflops * 1e12):
        yield f"'device_flops' is {peak:.4g}, and the peak of one chip of a {kind} is {tflops * 1e12:.4g} in bfloat16."
    if _both(time_s, chips, peak, hardware) and not _fits(hardware, time_s * chips * peak):
        yield (
            f"'training_hardware_flops' is {hardware:.4g}, and training_time x num_chips x device_flops is "
            f"{time_s * chips * peak:.4g}. Correct one of them."
        )


def _date(info: Mapping[str, Any]) -> Iterator[str]:
    text = info["run_completion_timestamp"]
    if text is None:
        return
    time = time_of(text)
    if time is None:
        yield f"'run_completion_timestamp' is {text!r}, expected a time of the form {TIME!r}."
    elif time > datetime.now(UTC) + timedelta(days=1):
        yield f"'run_completion_timestamp' is {text!r}, which has not come yet. Correct it."


def accelerator_of(info: Mapping[str, Any]) -> str | None:
    """The type of slice or GPU that `resources` names, in any of the forms that Marin's files have."""
    resources = info.get("resources")
    if not isinstance(resources, Mapping):
        return None
    device = resources.get("device")
    named = [device.get(key) for key in ("variant", "type")] if isinstance(device, Mapping) else []
    named += [resources.get(key) for key in ("tpu_type", "accelerator_type")]
    return next((name for name in named if isinstance(name, str)), None)


def _slices(resources: Mapping[str, Any], hosts: int) -> int:
    """The number of slices; Marin's newer files have that of hosts."""
    for name, hosts_each in (("slice_count", 1), ("replicas", hosts)):
        count = resources.get(name)
        if isinstance(count, int) and _is_a(count, int) and count >= hosts_each:
            return count // hosts_each
    return 1


def _is_a(value: Any, kind: type) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, int | float) and abs(value) > LARGEST:
        return False
    return isinstance(value, int | float if kind is float else kind)


def _both(*numbers: float | None) -> bool:
    return all(number is not None and 0 < number < math.inf for number in numbers)


def _fits(value: float, expected: float) -> bool:
    return math.isclose(value, expected, rel_tol=FITS)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
