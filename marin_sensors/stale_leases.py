"""A sensor on outputs that are left half made: their worker is gone, and no run continues them.

    from marin_sensors.stale_leases import stale_leases

    leases = stale_leases(ui="https://dagster.example.org")

It looks at the outputs of the code location that are not complete. A lease in a bucket is stale if the sensor has seen
it unchanged for its whole time to live, by this machine's clock: no clock of another machine decides. On a disk, the
kernel ends a lease with its process. Each is reported on the sensor's page, and once to the webhook. The sensor changes
nothing: the next run of the step continues.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import dagster as dg

from marin_resources.host.webhook import WEBHOOK
from marin_resources.orchestrator.io_manager import output_of_asset
from marin_resources.orchestrator.store_resource import StoreResource
from marin_resources.storage.output.state_summary import State, state_of
from marin_resources.storage.output.store import Store
from marin_resources.types.errors import MarinError
from marin_resources.types.output import Observed, Output
from marin_sensors.queries.materialized_versions import steps_of, version_materialized
from marin_sensors.webhook.channel import Channel
from marin_sensors.webhook.reported_findings import Reported

ENDING_S = 60.0
"""A worker that ends releases its lease before a run notes its end; one that has done neither for so long is gone."""
SHOWN = 5


def stale_leases(
    name: str = "stale_leases",
    *,
    webhook_env: str = WEBHOOK,
    ui: str = "",
    every_s: int = 600,
    per_hour: int = 20,
) -> dg.SensorDefinition:
    """A sensor named `name` on all steps of the code location. It reports, and so it runs.

    webhook_env    the variable with the webhook's address, which is a secret; without it nothing is sent
    ui             the address of Dagster's UI, for links
    every_s        seconds between two ticks
    per_hour       posts in an hour at most
    """
    channel = Channel(webhook_env, ui, per_hour)

    @dg.sensor(
        name=name,
        minimum_interval_seconds=every_s,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Reports outputs that are left half made: their worker is gone, and no run continues them.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        now_s = time.time()
        try:
            cursor = _Cursor.parse(context.cursor, context.log.warning)
            looked = _looked(context, StoreResource().store())
        except MarinError as error:
            return dg.SkipReason(str(error))
        cursor, abandoned = cursor.after(looked, now_s)
        for output in abandoned:
            context.log.warning(output.sentence)
        messages = [channel.message(output.id, "An output is left half made", output.sentence) for output in abandoned]
        delivery = channel.send(cursor.reported.sent, messages, now_s)
        reported = replace(
            cursor.reported.after({output.id: output.label for output in abandoned}, now_s), sent=delivery.sent
        )
        context.update_cursor(_Cursor(seen=cursor.seen, reported=reported).text())
        delivery.require()
        return dg.SkipReason(
            " ".join(filter(None, (_summary(abandoned, looked), reported.sentence(), delivery.sentence())))
        )

    return sensor


def _looked(context: dg.SensorEvaluationContext, store: Store) -> dict[Output, Observed]:
    """The outputs of the code location that are under way, or were when their worker ended."""
    assert context.repository_def is not None
    graph = context.repository_def.asset_graph
    keys = steps_of(graph)
    versions = version_materialized(context.instance, [key for key in keys if graph.get(key).partitions_def is None])
    outputs: list[Output] = []
    for key in keys:
        output = output_of_asset(graph, key)
        if graph.get(key).partitions_def is not None:
            existing = store.partitions(output)
            done = store.done_partitions(output, existing)
            outputs += [output.at(partition) for partition in existing if partition not in done]
        elif versions.get(key) != output.version:  # what a run here has completed is not checked
            outputs.append(output)
    looked = store.look(outputs)
    return {output: seen for output, seen in looked.items() if state_of(seen) in (State.RUNNING, State.DEAD)}


@dataclass(frozen=True, kw_only=True)
class _Abandoned:
    """An output that is left half made."""

    id: str
    label: str
    """The label of the output."""
    sentence: str


@dataclass(frozen=True, kw_only=True)
class _Cursor:
    """The sensor's cursor."""

    seen: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    """Path of an output under way -> the generation of its lease, and when that was first seen, in s since 1970."""
    reported: Reported = field(default_factory=Reported)

    @classmethod
    def parse(cls, text: str | None, warn: Callable[[str], object]) -> _Cursor:
        """The state of an earlier tick; nothing for a text that is no cursor of this sensor: it watches from now on."""
        try:
            fields = json.loads(text or "{}")
            seen = {path: (str(lease), float(since_s)) for path, (lease, since_s) in fields.get("seen", {}).items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            return cls(reported=Reported.parse(text, warn))
        return cls(seen=seen, reported=Reported.parse(text, warn))

    def after(self, looked: Mapping[Output, Observed], now_s: float) -> tuple[_Cursor, list[_Abandoned]]:
        """The cursor after this look, and the outputs that are left half made."""
        seen: dict[str, tuple[str, float]] = {}
        abandoned = []
        for output, observed in looked.items():
            holder = observed.holder
            if holder is not None and holder.ttl_s is None:
                continue  # the kernel holds it for a process that lives
            lease = holder.generation if holder is not None else "none"
            before, since_s = self.seen.get(observed.path, ("", now_s))
            if before != lease or since_s > now_s:  # renewed; or the clock was set back
                since_s = now_s
            seen[observed.path] = (lease, since_s)
            limit_s = holder.ttl_s if holder is not None and holder.ttl_s is not None else ENDING_S
            if now_s - since_s > limit_s:
                sentence = _sentence(output, observed, now_s - since_s)
                abandoned.append(_Abandoned(id=f"{observed.path} {lease}", label=output.label, sentence=sentence))
        return _Cursor(seen=seen, reported=self.reported), abandoned

    def text(self) -> str:
        return json.dumps({"seen": dict(self.seen), **json.loads(self.reported.text())})


def _sentence(output: Output, observed: Observed, unchanged_s: float) -> str:
    holder = observed.holder
    reason = (
        f"the lease of {holder.describe()} was not renewed for {unchanged_s / 60:.0f} minutes"
        if holder is not None
        else "it holds no lease, and has neither finished nor failed"
    )
    return (
        f"The worker of {output.label} at {observed.path} is gone: {reason}. Materialize {output.label} again: it "
        "continues from there."
    )


def _summary(abandoned: list[_Abandoned], looked: Mapping[Output, Observed]) -> str:
    if not abandoned:
        return f"No output is left half made. {len(looked)} under way."
    more = f" And {len(abandoned) - SHOWN} more." if len(abandoned) > SHOWN else ""
    return " ".join(output.sentence for output in abandoned[:SHOWN]) + more
