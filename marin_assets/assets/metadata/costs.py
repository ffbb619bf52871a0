"""The cost of an output by itself, as metadata. `marin cost` adds the costs of all that it was computed from."""

from __future__ import annotations

from typing import Any

from marin_resources.configuration.settings import SettingError
from marin_resources.storage.output.notes.cost import cost_of
from marin_resources.storage.usage.cost_estimate import CostEstimate, bill_of, price_list
from marin_resources.types.record import Record


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
