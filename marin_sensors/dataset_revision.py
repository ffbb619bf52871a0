"""A sensor on a dataset of somebody else: each new revision is announced, and becomes a partition if one is requested.

    from marin_sensors.dataset_revision import dataset_revision

    c4 = dataset_revision("c4", "hf://datasets/allenai/c4")

    c4 = dataset_revision("c4", "hf://datasets/allenai/c4", partitions="c4_commits", assets=["c4/raw"])

Announced means: in the tick's log, once at the webhook if one is configured, and as an observation on the first asset.
With `partitions`, the commit (or the ETag) is added to the set, and the assets are materialized for it: once, also if
the daemon is killed. The raw step of a Hugging Face dataset reads that commit:
this_partition(form="hf://datasets/allenai/c4@{partition}/en/*.gz").
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import dagster as dg

from marin_resources.host.webhook import WEBHOOK
from marin_sensors.queries.revision import Revision, RevisionError, require_source, revision_of
from marin_sensors.runs import lost_run_retries as lost
from marin_sensors.runs import requests as run_requests
from marin_sensors.webhook.channel import Channel
from marin_sensors.webhook.outbox import SentMessages


def dataset_revision(
    name: str,
    source: str,
    *,
    partitions: str = "",
    assets: Sequence[str] = (),
    every_s: int = 3600,
    webhook_env: str = WEBHOOK,
    ui: str = "",
    start: bool | None = None,
) -> dg.SensorDefinition:
    """A sensor named `name` on the dataset `source`: "hf://datasets/allenai/c4", or a URL.

    partitions    the name of the dynamic set of the assets, to which each revision is added; empty: it is announced
    assets        keys of the assets that are materialized at the new partition
    every_s       seconds between two ticks
    webhook_env   the variable with the webhook's address, which is a secret; without it nothing is sent
    ui            the address of Dagster's UI, for links
    start         whether it runs without being switched on; by default if it requests no run

    Raises ValueError for a source that is none, and for partitions without assets or assets without partitions.
    """
    require_source(source)
    if bool(partitions) != bool(assets):
        raise ValueError(
            f"The sensor {name!r} has partitions={partitions!r} and assets={list(assets)!r}, expected both, or neither."
        )
    keys = run_requests.keys_of(name, assets) if assets else []
    channel = Channel(webhook_env, ui)
    runs = start if start is not None else not keys
    then = f"added to the set {partitions!r}, and {', '.join(assets)} are materialized for it" if keys else "announced"

    @dg.sensor(
        name=name,
        asset_selection=dg.AssetSelection.assets(*keys) if keys else None,
        minimum_interval_seconds=every_s,
        default_status=dg.DefaultSensorStatus.RUNNING if runs else dg.DefaultSensorStatus.STOPPED,
        description=f"Asks for the revision of {source}. A new one is {then}.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        if wrong := run_requests.misfit(context, keys, partitions):
            return dg.SkipReason(wrong)
        try:
            cursor, revision = _Cursor.parse(context.cursor), revision_of(source)
        except RevisionError as error:
            return dg.SkipReason(str(error))
        if keys and (wrong := run_requests.refused(context, partitions, revision.key)):
            return dg.SkipReason(wrong)
        cursor, is_new = cursor.after(revision)
        sentence = f"{source} has a new revision: {revision.phrase}."
        messages = []
        if cursor.before:  # the first revision that is seen is no news
            messages.append(channel.message(f"{cursor.before}->{cursor.key}", "A dataset has changed", sentence))
        delivery = channel.send(cursor.sent, messages, time.time())
        delivery.require()
        summary = f"{source} is at {revision.phrase}, seen first at {cursor.since}."
        if is_new:
            context.log.info(sentence)
        requests = lost.request_again(context, name, partitions, keys) if keys else []
        if is_new and keys:
            requests.append(_request(name, revision, keys))
        return dg.SensorResult(
            run_requests=requests,
            skip_reason=None if requests else " ".join(filter(None, (summary, delivery.sentence()))),
            cursor=replace(cursor, sent=delivery.sent).text(),
            dynamic_partitions_requests=(
                [dg.AddDynamicPartitionsRequest(partitions, [revision.key])] if is_new and keys else []
            ),
            asset_events=(
                [dg.AssetObservation(keys[0], partition=revision.key, description=sentence)] if is_new and keys else []
            ),
        )

    return sensor


def _request(name: str, revision: Revision, keys: Sequence[dg.AssetKey]) -> dg.RunRequest:
    return dg.RunRequest(
        run_key=f"{name}: {revision.key}",
        asset_selection=list(keys),
        partition_key=revision.key,
        tags={"marin/revision": revision.key, **lost.tags_of(name)},
    )


@dataclass(frozen=True, kw_only=True)
class _Cursor:
    """The sensor's cursor."""

    key: str = ""
    """The key of the revision that was seen last."""
    before: str = ""
    """The key of the revision before it."""
    since: str = ""
    """When it was first seen, in UTC by this machine's clock."""
    sent: SentMessages = field(default_factory=SentMessages)

    @classmethod
    def parse(cls, text: str | None) -> _Cursor:
        """Raises RevisionError for a text that is no cursor of this sensor."""
        if not text:
            return cls()
        try:
            fields = json.loads(text)
            sent = SentMessages.parse(json.dumps(fields["told"]))
            return cls(key=fields["key"], before=fields["before"], since=fields["since"], sent=sent)
        except (ValueError, KeyError, TypeError):
            raise RevisionError(
                f"The cursor {text!r:.100} is none of this sensor. Reset it: a revision that was made is reused."
            ) from None

    def after(self, revision: Revision) -> tuple[_Cursor, bool]:
        """The cursor after this revision was seen, and whether the revision is new."""
        if revision.key == self.key:
            return self, False
        now = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
        return replace(self, key=revision.key, before=self.key, since=now), True

    def text(self) -> str:
        return json.dumps(
            {"key": self.key, "before": self.before, "since": self.since, "told": json.loads(self.sent.text())}
        )
