"""The metadata of a materialization, in the order of a reader's interest: damage and drift, if any, the result, its
cost, its place in the store, and how it was computed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import dagster as dg

from marin_assets.assets.metadata.curves import curves_of
from marin_assets.assets.metadata.files import data_of, links_of, plots_of, report_of
from marin_assets.assets.metadata.tables import MAX_ROWS, config_table, table, tables_of
from marin_assets.plan.record_facts.origins import total_of_origins
from marin_assets.step.origin import NONE, Origin, Origins
from marin_resources.configuration.settings import SettingError
from marin_resources.drift.drift import Drift, Kind, without_plumbing
from marin_resources.orchestrator.produce import Produced
from marin_resources.storage.output.attempts import latest_attempt, log_path
from marin_resources.storage.output.notes.cost import cost_of
from marin_resources.storage.output.notes.ledger import ledger_of as ledger_sums
from marin_resources.storage.paths import is_local
from marin_resources.storage.transfer.budget import spent
from marin_resources.storage.usage.cost_estimate import CostEstimate, bill_of, price_list
from marin_resources.types.digits import rounded
from marin_resources.types.output import Match
from marin_resources.types.record import Record
from marin_resources.types.versioned_json import ControlFileError

UNKNOWN = "unknown"
LEDGER = ("goodput", "tries", "slices_waited_s", "startup_s", "kept_s", "lost_s", "device_hours")
TAKEN = frozenset(
    {
        *(
            "path",
            "browse",
            "report",
            "reused",
            "files",
            "bytes",
            "duration_s",
            "log",
            "config",
            "results",
            "made_by",
            "made_in",
        ),
        *("drift", "drift_count", "drift_unknown", "transferred_bytes", "transferred_dollars", "transfers"),
        *("damaged", "transfers_unknown", "cluster", "site", "adopted", "adopted_inputs"),
        *LEDGER,
        *("cpu_s", "bytes_in", "cost_dollars", "cost_unknown", "contamination"),
        *("licences", "raw_bytes", "raw_sizes_unknown", "raw_data"),
        *("job", "job_id", "attempts", "code", "queue_s", "setup_s", "compute_s"),
    }
)
"""Reserved names."""
LONGEST_NAME = 36


def materialization_metadata(
    produced: Produced,
    drift: Sequence[Drift] = (),
    not_recorded: Sequence[Kind] = (),
    contamination: Sequence[Mapping[str, str]] = (),
    origins: Origins = NONE,
) -> dict[str, Any]:
    """Metadata of one materialization. Names are stable, so that Dagster can plot numbers over time.

    `contamination`: rows of plan/record_facts/contamination.py, of a score. `origins`: the data sets behind the output.
    """
    observed, record = produced.observed, produced.observed.record
    result, transfers = observed.result, _transfers(observed.path, record)
    drifts, log = _drifts(drift, not_recorded), _log(observed.path, record)
    unverified = {"unverified": "the record beside this output has no version to compare"}
    shown: dict[str, Any] = {
        **{name: value for name, value in log.items() if name == "damaged"},
        **(unverified if observed.match is Match.UNVERIFIED else {}),
        **(drifts if without_plumbing(drift) else {}),
        **data_of(observed),
        **report_of(observed),
        **links_of(result),
        **_renamed(tables_of(result)),
        **_renamed(curves_of(result)),
        **plots_of(observed),
        **_renamed(_numbers(result)),
        **({"contamination": table(contamination)} if contamination else {}),
        **adoption_of(record),
        **origins_of(origins),
        "reused": produced.reused,
        **drifts,
    }
    shown |= {
        **_sizes(record),
        **_timing(record),
        **costs_of(record),
        **ledger_of(record),
        **{key: value for key, value in transfers.items() if key != "transfers"},
    }
    if transfers.get("transfers"):
        shown["transfers"] = table(list(transfers["transfers"]))
    if produced.waited_s:
        shown["waited_s"] = round(produced.waited_s, 1)
    if produced.lost_workers:
        shown["lost_workers"] = produced.lost_workers
    return shown | {
        "dagster/uri": _uri(observed.data_path),
        **log,
        **_job(record),
        **_site(record),
        "config": config_table(record.config or {}, _versioned(record)),
        "results": dg.MetadataValue.json(dict(result)),
        **_maker(record),
    }


def _versioned(record: Record) -> list[str]:
    """The dotted names of the config's fields in the version; none if the record has no version."""
    fields = record.version.get("config")
    return list(fields) if isinstance(fields, Mapping) else []


def _maker(record: Record) -> dict[str, Any]:
    """The user who computed the output, the commit, and the run, which may be of another deployment. Nothing for an
    adopted output: the user who adopted it did not compute it."""
    if record.adopted:
        return {}
    git = recorded if isinstance(recorded := record.git, Mapping) else {}
    own = recorded if isinstance(recorded := record.project, Mapping) else {}
    parts = [
        f"{record.user or 'someone'} on {record.host or 'an unknown machine'}",
        f"commit {str(git['commit'])[:12]}{' with changes' if git.get('dirty') else ''}" if git.get("commit") else "",
        f"marin-dagster {own['version']}" if own.get("version") else "",
    ]
    run = record.dagster_run_id
    return {"made_by": ", ".join(filter(None, parts))} | (
        {"made_in": dg.MetadataValue.dagster_run(str(run))} if run else {}
    )


def _log(path: str, record: Record) -> dict[str, Any]:
    """The log of the attempt in the record; a record of Marin's has none, and then it is the latest. An adoption has no
    log."""
    if record.adopted:
        return {}
    try:
        attempt = record.attempt or latest_attempt(path)
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


def _sizes(record: Record) -> dict[str, Any]:
    sizes = {"files": record.manifest.files, "bytes": record.manifest.bytes, "duration_s": record.duration_s}
    return {key: rounded(value) for key, value in sizes.items() if value is not None}


def _timing(record: Record) -> dict[str, Any]:
    """The time spent waiting for a machine, setting it up, and computing."""
    timing = record.timing
    return {key: rounded(timing[key]) for key in ("queue_s", "setup_s", "compute_s") if timing.get(key) is not None}


def _job(record: Record) -> dict[str, Any]:
    """The cluster's job that computed the output, if any. Its page exists as long as the cluster's head."""
    job = record.job
    if job is None:
        return {}
    page = f"{job.dashboard.rstrip('/')}/#/jobs/{quote(job.id, safe='')}"
    return {
        "job": dg.MetadataValue.url(page),
        "job_id": job.id,
        "attempts": record.attempt,
        "code": _code(job.code),
    }


def _site(record: Record) -> dict[str, Any]:
    """The cluster of a fleet that computed the output, and why that one."""
    return {"cluster": record.cluster, "site": record.site} if record.cluster else {}


def _code(code: Any) -> str:
    """The code that a job ran, as a phrase."""
    package = code.get("package") if isinstance(code, Mapping) else None
    return f"shipped {package}" if package else "image" if isinstance(code, Mapping) else str(code)


def _transfers(path: str, record: Record) -> dict[str, Any]:
    """The transfers from other regions, if the config has a mirrored path, or a cluster of a fleet computed it."""
    if "mirror://" not in json.dumps(record.config) and not record.cluster:
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
    """Rounded numbers of the result by name, which Dagster plots over time. Those with a name that would cover the next
    column of the page are in one table, "more numbers"."""
    numbers = {k: rounded(v) for k, v in result.items() if isinstance(v, int | float) and not isinstance(v, bool)}
    short = {name: number for name, number in numbers.items() if len(name) <= LONGEST_NAME}
    long = [{"value": number, "name": name} for name, number in numbers.items() if name not in short]
    return {**short, "more numbers": table(long)} if long else short


def _renamed(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata has one namespace, so a reserved name gets a prefix."""
    return {f"result_{key}" if key in TAKEN else key: value for key, value in shown.items()}


def adoption_of(record: Record) -> dict[str, Any]:
    """One text, and one table of the adopted outputs upstream; nothing without an adoption."""
    shown: dict[str, Any] = {}
    if adopted := record.adopted:
        of = adopted.of.get("name")
        made_as = f", made as {of}" if of else ""
        shown["adopted"] = (
            f"from {adopted.path}{made_as}: {adopted.why} ({adopted.by or 'someone'}, {(adopted.at or '')[:19]})"
        )
    if made_from := record.adopted_inputs:
        rows = [{"output": name, "from": origin.path, "why": origin.why} for name, origin in made_from.items()]
        shown["adopted_inputs"] = table(rows)
    return shown


def costs_of(record: Record) -> dict[str, Any]:
    """Numbers, which Dagster plots over the materializations; nothing of a record without them."""
    if not record.spent:
        return {}
    cost = cost_of(record)
    try:
        bill = bill_of(cost, price_list())
    except SettingError as error:  # a price that is wrong must not keep an output from its page
        bill = CostEstimate(dollars=None, unknown=str(error))
    numbers = {
        "cpu_s": cost.cpu_s,
        "bytes_in": cost.bytes_in,
        "device_hours": round(cost.device_hours, 4) if cost.device_hours else None,
        "cost_dollars": None if bill.dollars is None else round(bill.dollars, 4),
        "cost_unknown": bill.unknown or None,
    }
    return {name: value for name, value in numbers.items() if value is not None}


def origins_of(origins: Origins) -> dict[str, Any]:
    """`licences`, `raw_bytes` and the table `raw_data`; nothing without a data set. A sum that lacks a size is marked
    by `raw_sizes_unknown`."""
    if not origins:
        return {}
    total = total_of_origins(origins)
    return {
        "licences": total.describe_licences(),
        "raw_bytes": total.bytes,
        **({"raw_sizes_unknown": total.sizes_unknown} if total.sizes_unknown else {}),
        "raw_data": table([_row(name, origin) for name, origin in origins.items()]),
    }


def _row(step: str, origin: Origin) -> dict[str, Any]:
    return {
        "bytes": UNKNOWN if origin.bytes is None else origin.bytes,
        "licence": origin.licence or UNKNOWN,
        "data set": origin.name,
        "step": step,
        "homepage": origin.homepage or "",
    }


def ledger_of(record: Record) -> dict[str, Any]:
    """The ledger of a step on slices: the cost of its tries, and the share of it that was kept. Numbers, which Dagster
    plots over the materializations, and a table of the last tries; nothing without tries."""
    tries = record.tries
    if not tries:
        return {}
    sums = record.ledger or ledger_sums(tries)
    return {
        **({} if sums["goodput"] is None else {"goodput": sums["goodput"]}),
        "slices_waited_s": sums["waited_s"],
        **{name: sums[name] for name in ("startup_s", "kept_s", "lost_s")},
        **({"device_hours": sums["device_hours"]} if sums.get("device_hours") else {}),
        "tries": table([_try_row(entry) for entry in tries[-MAX_ROWS:]]),
    }


def _try_row(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a try, with "?" if its end is not known: its job was lost with it."""
    ended = entry.get("ran_s") is not None
    return {
        "try": f"{entry.get('attempt', '?')}.{entry.get('number', '?')}",
        "end": (entry.get("cause") or "returned") if ended else "lost with its job",
        "waited s": entry.get("waited_s"),
        "startup s": entry.get("startup_s") if ended else "?",
        "kept s": entry.get("kept_s") if ended else "?",
        "lost s": entry.get("lost_s") if ended else "?",
        "from step": "beginning" if entry.get("resumed_from") is None else str(entry["resumed_from"]),
        "slices": ", ".join(entry.get("slices") or []) or "none",
        "hosts": ", ".join(entry.get("hosts") or []),
        "error": entry.get("error") or "",
    }
