"""The prices of expected device hours, at today's prices, where each step would be computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from marin_assets.plan.plan import Planned
from marin_resources.ray_tpu.cluster.settings_from_env import cluster_names, settings_from_env
from marin_resources.storage.output.notes.cost import RecordCost
from marin_resources.storage.usage.cost_estimate import bill_of, price_list


def with_prices(planned: Sequence[Planned]) -> list[Planned]:
    """The plan with the dollars of the device hours that are expected and have a price. Raises SettingError."""
    if not any(item.expected is not None and item.expected.device_hours for item in planned):
        return list(planned)
    listed, dashboard = price_list(), _dashboard()
    priced = []
    for item in planned:
        if item.expected is not None and item.expected.device_hours:
            cost = RecordCost(
                device_s=3600 * item.expected.device_hours,
                pool=item.node.step.resources.pool,
                cluster=None if item.site is None else item.site.cluster,
                dashboard=dashboard,
            )
            item = replace(item, expected=replace(item.expected, dollars=bill_of(cost, listed).dollars))
        priced.append(item)
    return priced


def _dashboard() -> str | None:
    """The address of the cluster that computes; None for a fleet, whose plan names the cluster of each step."""
    if len(cluster_names(None)) > 1:
        return None
    settings = settings_from_env(None)
    return None if settings is None else settings.address
