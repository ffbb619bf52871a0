"""The metadata of a materialization: path, counts, bytes, duration, results, plots, log, config."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import dagster as dg

from marin_resources.drift.drift import Drift, Kind, without_plumbing
from marin_resources.orchestrator.produce import Produced
from marin_resources.output import Match, Observed
from marin_resources.storage.files import exists, read_bytes, size_of
from marin_resources.storage.output.attempts import latest_attempt, log_path
from marin_resources.storage.paths import is_local, join
from marin_resources.storage.transfer.budget import spent
from marin_resources.versioned_json import ControlFileError

MAX_PLOT_BYTES = 400_000
"""A larger plot is shown as a path: metadata rows are stored in Dagster's database."""

TAKEN = frozenset({"path", "reused", "files", "bytes", "duration_s", "log", "config", "results", "made_by"}) | {
    *("drift", "drift_count", "drift_unknown", "transferred_bytes", "transferred_dollars", "transfers"),
    *("damaged", "transfers_unknown"),
    *("job", "job_id", "attempts", "code", "queue_s", "setup_s", "compute_s"),
}
"""Reserved names."""


def materialization_metadata(
    produced: Produced, drift: Sequence[Drift] = (), not_recorded: Sequence[Kind] = ()
) -> dict[str, Any]:
    """Metadata of one materialization. Names are stable, so that Dagster can plot numbers over time."""
    observed, record = produced.observed, produced.observed.record or {}
    transfers = _transfers(observed.path, record)
    config = record.get("config") or {}
    shown: dict[str, Any] = {  # in the order of the page: important entries first, long ones last
        "reused": produced.reused,
        **_drifts(drift, not_recorded),
        "dagster/uri": _uri(observed.path),
        **_plots(observed),
        **_numbers(observed.result),
        **_sizes(record),
        **_timing(record),
        **_job(record),
        **{key: value for key, value in transfers.items() if key != "transfers"},
        **_log(observed.path, record),
    }
    if observed.match is Match.UNVERIFIED:
        shown["unverified"] = "the record beside this output has no version to compare"
    if produced.waited_s:
        shown["waited_s"] = round(produced.waited_s, 1)
    if produced.lost_workers:
        shown["lost_workers"] = produced.lost_workers
    if transfers.get("transfers"):
        shown["transfers"] = dg.MetadataValue.json(list(transfers["transfers"]))
    shown["results"] = dg.MetadataValue.json(dict(observed.result))
    shown["config"] = dg.MetadataValue.json(config if isinstance(config, dict | list) else {"config": config})
    shown["made_by"] = dg.MetadataValue.json(
        {k: record.get(k) for k in ("user", "host", "git", "project", "dagster_run_id")}
    )
    return shown


def _log(path: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """The log of the attempt in the record; a record of Marin's has none, and then it is the latest."""
    try:
        attempt = record.get("attempt") or latest_attempt(path)
    except ControlFileError as error:
        return {"damaged": str(error)}
    return {"log": dg.MetadataValue.path(log_path(path, attempt))}


def _uri(path: str) -> str:
    return f"file://{path}" if is_local(path) and not path.startswith("file://") else path


def _drifts(drift: Sequence[Drift], not_recorded: Sequence[Kind]) -> dict[str, Any]:
    """Empty without drift. Changes of the plumbing are shown but not counted, as every update has some."""
    shown: dict[str, Any] = {}
    if drift:
        shown["drift_count"] = len(without_plumbing(drift))
        shown["drift"] = dg.MetadataValue.md("\n".join(f"- {item.sentence()}" for item in drift))
    if not_recorded:
        shown["drift_unknown"] = f"its record does not say enough of: {', '.join(not_recorded)}"
    return shown


def _sizes(record: Mapping[str, Any]) -> dict[str, Any]:
    manifest = record.get("manifest") or {}
    found = {"files": manifest.get("files"), "bytes": manifest.get("bytes"), "duration_s": record.get("duration_s")}
    return {key: value for key, value in found.items() if value is not None}


def _timing(record: Mapping[str, Any]) -> dict[str, Any]:
    """The time spent waiting for a machine, setting it up, and computing."""
    timing = record.get("timing") or {}
    return {key: timing[key] for key in ("queue_s", "setup_s", "compute_s") if timing.get(key) is not None}


def _job(record: Mapping[str, Any]) -> dict[str, Any]:
    """The cluster's job that computed the output, if any. Its page exists as long as the cluster's head."""
    job = record.get("job")
    if not job:
        return {}
    page = f"{job['dashboard'].rstrip('/')}/#/jobs/{quote(job['id'], safe='')}"
    return {
        "job": dg.MetadataValue.url(page),
        "job_id": job["id"],
        "attempts": record.get("attempt"),
        "code": _code(job.get("code")),
    }


def _code(code: Any) -> str:
    """The code that a job ran, as a phrase."""
    package = code.get("package") if isinstance(code, Mapping) else None
    return f"shipped {package}" if package else "image" if isinstance(code, Mapping) else str(code)


def _transfers(path: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """The transfers from other regions, if the config has a mirrored path."""
    if "mirror://" not in json.dumps(record.get("config")):
        return {}
    try:
        moved = spent(path)
    except ControlFileError as error:
        return {"transfers_unknown": str(error)}
    return {
        "transferred_bytes": moved["bytes"],
        "transferred_dollars": moved["dollars"],
        "transfers": moved["transfers"],
    }


def _numbers(result: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers of the result by name. Metadata has one namespace, so a reserved name gets a prefix."""
    numbers = {k: v for k, v in result.items() if isinstance(v, int | float) and not isinstance(v, bool)}
    return {f"result_{key}" if key in TAKEN else key: value for key, value in numbers.items()}


def _plots(observed: Observed) -> dict[str, Any]:
    plots = observed.result.get("plots")
    names = [name for name in plots if isinstance(name, str)] if isinstance(plots, list) else []
    return {
        f"plot {name.rsplit('/', 1)[-1]}": _inline(join(observed.path, name))
        for name in names
        if exists(join(observed.path, name))
    }


def _inline(path: str) -> dg.MetadataValue:
    if size_of(path) > MAX_PLOT_BYTES:
        return dg.MetadataValue.path(path)
    kind = "svg+xml" if path.endswith(".svg") else "png"
    data = base64.b64encode(read_bytes(path)).decode()
    return dg.MetadataValue.md(f"![{path.rsplit('/', 1)[-1]}](data:image/{kind};base64,{data})")
