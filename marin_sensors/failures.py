"""A sensor that posts failures to a webhook: a run that failed, a check that no longer holds.

    from marin_sensors.failures import failures

    on_failure = failures("failures", webhook_env="MARIN_WEBHOOK_URL", ui="https://dagster.example.org")

The message has the sentence of the failure, the step, the last lines of its traceback, and a link. Each is sent once;
more than three at a time are one message, and an hour has at most `per_hour`. A webhook that is down is tried again by
the next tick. Failures before the sensor was switched on are not sent.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import dagster as dg

from marin_resources.host.webhook import WEBHOOK
from marin_sensors.runs.failure_cause import read_failed_run
from marin_sensors.webhook.channel import Channel
from marin_sensors.webhook.message import Message
from marin_sensors.webhook.outbox import SentMessages
from marin_sensors.webhook.reported_findings import Reported

LOOK_BACK_S = 3600.0
"""Runs that ended longer before the last tick that sent everything are not read again."""
TRIED_AGAIN_S = 300.0
"""Dagster's daemon launches a run again within seconds. One that it has not by then, it cannot."""
PROBLEM = "A run failed"


def failures(
    name: str = "failures",
    *,
    webhook_env: str = WEBHOOK,
    ui: str = "",
    every_s: int = 30,
    per_hour: int = 20,
    secrets: Sequence[str] = (),
) -> dg.SensorDefinition:
    """A sensor that posts failures of runs and of checks to a webhook.

    webhook_env    the variable with the webhook's address, which is a secret; without it nothing is sent
    ui             the address of Dagster's UI, for links
    per_hour       posts in an hour at most; more failures wait, and are then sent as one message
    secrets        names of variables whose values no message shows; that of the webhook is always among them
    """

    channel = Channel(webhook_env, ui, per_hour, tuple(secrets))

    @dg.sensor(
        name=name,
        minimum_interval_seconds=every_s,
        default_status=dg.DefaultSensorStatus.RUNNING if channel.is_configured else dg.DefaultSensorStatus.STOPPED,
        description=(
            f"Posts runs that failed and checks that no longer hold to the webhook of {webhook_env}: each once, "
            f"at most {per_hour} messages an hour."
        ),
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        now_s = time.time()
        if not channel.is_configured:
            return dg.SkipReason(f"No webhook is configured. Set {webhook_env} to its address.")
        before = Reported.parse(context.cursor, context.log.warning)
        if not before.sent.since_s:
            began = SentMessages(since_s=now_s, ids=tuple(_failing_checks(context)))
            context.update_cursor(Reported(keys=frozenset(began.ids), sent=began).text())
            return dg.SkipReason("It reports what breaks from now on.")
        sent = before.sent
        broke = [*_failed_runs(context, sent, channel, now_s), *_failed_checks(context, channel)]
        delivery = channel.send(sent, broke, now_s)
        sent = delivery.sent
        if delivery.everything:
            sent = replace(sent, since_s=max(sent.since_s, now_s - LOOK_BACK_S))
        reported = replace(before.after({message.id: message.title for message in broke}, now_s), sent=sent)
        context.update_cursor(reported.text())
        delivery.require()
        return dg.SkipReason(delivery.sentence() or reported.sentence())

    return sensor


def _failed_runs(
    context: dg.SensorEvaluationContext, sent: SentMessages, channel: Channel, now_s: float
) -> Iterator[Message]:
    """A message for each run that has failed since the sensor began, and is not tried again; the oldest first."""
    records = context.instance.get_run_records(
        dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE], updated_after=datetime.fromtimestamp(sent.since_s, UTC)),
        order_by="update_timestamp",
        ascending=True,
    )
    sent_ids = frozenset(sent.ids)
    for record in records:
        run = record.dagster_run
        if run.run_id in sent_ids or _is_tried_again(record, now_s):
            continue
        why = read_failed_run(context.instance, run.run_id)
        title = f"{PROBLEM}: {', '.join(why.steps) or run.job_name}"
        yield channel.message(run.run_id, title, why.sentence, run_id=run.run_id, log=why.log)


def _is_tried_again(record: dg.RunRecord, now_s: float) -> bool:
    """Whether Dagster has launched the run again, or is about to."""
    tags = record.dagster_run.tags
    if "dagster/auto_retry_run_id" in tags:
        return True
    ended_s = record.end_time or record.update_timestamp.timestamp()
    return tags.get("dagster/will_retry") == "true" and now_s - ended_s < TRIED_AGAIN_S


def _failing_checks(context: dg.SensorEvaluationContext) -> dict[str, tuple[str, str]]:
    """Id of the evaluation -> name and run, of each check whose last evaluation failed."""
    graph = context.repository_def.asset_graph if context.repository_def is not None else None
    if graph is None:
        return {}
    latest = context.instance.event_log_storage.get_latest_asset_check_execution_by_key(list(graph.asset_check_keys))
    return {
        f"check {record.id}": (f"{key.asset_key.to_user_string()}: {key.name}", record.run_id)
        for key, record in latest.items()
        if record.status.value == "FAILED"
    }


def _failed_checks(context: dg.SensorEvaluationContext, channel: Channel) -> Iterator[Message]:
    for number, (check, run_id) in sorted(_failing_checks(context).items()):
        sentence = f"The check {check!r} failed when its asset was materialized last."
        yield channel.message(number, f"A check does not hold: {check}", sentence, run_id=run_id)
