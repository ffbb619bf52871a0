"""Speedrun entries in files: `speedrun_results.json`, ours or Marin's, and Marin's `tracker_metrics.jsonl`.

In:  a file, or a folder of them at any depth.
Out: entries, named by the folders of their files; and a sentence for each fault. Written: nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from marin_assets.stages.report.speedruns.entry import BACKWARD, FORMAT_VERSION, RESULTS, TIME, Entry
from marin_assets.stages.report.speedruns.faults import faults_of
from marin_resources.storage.files import StoredFile, read_bytes, stored_files
from marin_resources.storage.paths import join
from marin_resources.types.errors import InvalidInputError
from marin_resources.types.versioned_json import VersionedJson

INFO = "run_info"
TRACKED = "tracker_metrics.jsonl"
"""Marin's copy of what a training has logged to W&B: {"config": {…}, "summary": {…}}."""
NOT_TIMED = f"{TRACKED} has no durations of steps, so neither the time nor the operations of the hardware are known."


class SpeedrunError(InvalidInputError):
    """Entries that cannot be used: one sentence."""


FORMAT = VersionedJson(
    kind="file of speedruns",
    newest=FORMAT_VERSION,
    error=SpeedrunError,
    default=1,  # Marin's have none
    if_damaged="Write it again: a step of default_speedrun has one in its output.",
)


@dataclass(frozen=True, kw_only=True)
class Read:
    """One entry of a file, with its faults."""

    name: str
    path: str
    info: Any
    faults: tuple[str, ...]

    @property
    def entry(self) -> Entry:
        return Entry(name=self.name, info=self.info)


def read_entries(path: str) -> list[Read]:
    """Read the entries of a file, or of all files below a folder, by name. Faults are in them.

    A file that is no file of entries at all is one entry without fields and with one fault. Raises SpeedrunError for a
    path without any file of entries.
    """
    try:
        files = [file for file in stored_files(path) if file.name.rpartition("/")[2] in (RESULTS, TRACKED)]
    except FileNotFoundError:
        raise SpeedrunError(f"{path!r} does not exist, expected a folder with files {RESULTS!r}.") from None
    if not files:
        raise SpeedrunError(f"{path!r} has no file {RESULTS!r}, expected one below it for each speedrun.")
    return [read for file in files for read in _read(file, path.rstrip("/"))]


def duplicates(reads: Iterable[Read]) -> Iterator[tuple[Read, str]]:
    """Each entry with the numbers of an earlier one, and the sentence for it."""
    first: dict[tuple[Any, ...], Read] = {}
    for read in reads:
        if not read.faults:
            other = first.setdefault(read.entry.numbers, read)
            if other is not read:
                yield read, f"it is the run of {other.name!r}: all of its numbers are equal. Remove one of them."


def _read(file: StoredFile, root: str) -> Iterator[Read]:
    folder = file.name.rpartition("/")[0]
    name = folder or file.path.rpartition("/")[0].rpartition("/")[2] or "."
    shown = root if root.endswith(file.name) else join(root, file.name)
    try:
        infos = _infos(file)
    except SpeedrunError as error:
        yield Read(name=name, path=shown, info={}, faults=(str(error),))
        return
    for number, info in enumerate(infos, 1):
        own = name if len(infos) == 1 else f"{name}#{number}"
        yield Read(name=own, path=shown, info=info, faults=tuple(faults_of(info)))


def _infos(file: StoredFile) -> list[Any]:
    """The fields of each entry, unchecked. Raises SpeedrunError for another file."""
    data = read_bytes(file.path)
    if file.path.endswith(TRACKED):
        return [info_of_tracked(data, file.path)]
    runs = FORMAT.parse(data, file.path).get("runs")
    if not isinstance(runs, list) or not runs or any(not isinstance(run, dict) or INFO not in run for run in runs):
        raise SpeedrunError(
            'It has no entry, expected {"runs": [{"run_info": {…}}]}. Write it again: a step of default_speedrun has '
            "one in its output."
        )
    return [run[INFO] for run in runs]


def info_of_tracked(data: bytes, path: str) -> dict[str, Any]:
    """The `run_info` of a `tracker_metrics.jsonl`. Times, which it lacks, are null. Raises SpeedrunError."""
    lines = [line for line in data.splitlines() if line.strip()]
    try:
        records = [json.loads(line) for line in lines]
        merged = {key: value for record in records for key, value in record["summary"].items()}
        config = {key: value for record in records for key, value in (record.get("config") or {}).items()}
        return _info_of(merged, config)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, OSError, RecursionError):
        raise SpeedrunError(
            f'{path!r} is no {TRACKED} of Marin\'s, expected a line {{"config": {{…}}, "summary": {{…}}}}.'
        ) from None


def _info_of(summary: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    tokens, gflops = summary.get("throughput/total_tokens"), summary.get("throughput/total_gflops")
    flops, stamp = None if gflops is None else gflops * 1e9, summary.get("_timestamp")
    trainer = config.get("trainer") or {}
    return {
        "author": {"name": "unknown", "affiliation": "", "url": ""},
        "description": f"Imported from {TRACKED}.",
        "model_config": config.get("model") or {},
        "train_config": {name: trainer.get(name) for name in ("num_train_steps", "train_batch_size")},
        "tokenized_dataset": None,
        "resources": None,
        "model_size": summary.get("parameter_count"),
        "total_tokens": None if tokens is None else int(tokens),
        "model_flops": flops,
        "model_flops_per_token": flops / tokens / BACKWARD if flops and tokens else None,
        **dict.fromkeys(("num_devices", "num_chips", "device_flops", "training_time", "training_hardware_flops")),
        **{key: value for key, value in summary.items() if key.startswith("eval/")},
        "run_completion_timestamp": None if stamp is None else datetime.fromtimestamp(stamp, UTC).strftime(TIME),
        "wandb_run_link": None,
        "notes": [NOT_TIMED],
    }
