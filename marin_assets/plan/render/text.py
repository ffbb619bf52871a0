"""A plan as lines of text: a few lines for each group, or for each output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from marin_assets.plan.estimates import ASSUMED_MFU, Expected, Total
from marin_assets.plan.plan import Action, Planned
from marin_assets.plan.record_facts.origins import describe_origin, total_of_lineages, total_of_origins
from marin_assets.plan.render.groups import Group, alike, counts_of, groups_of, total_to_compute
from marin_resources.ray_tpu.site import describe as describe_sites
from marin_resources.storage.manifest.bytes_progress import readable_bytes
from marin_resources.types.durations import readable_duration

ONE_BY_ONE = 12
"""Steps of a plan that are shown one by one; a larger plan is shown by its groups."""
SHOWN_STEPS = 6
SHOWN_KEYS = 8
INDENT = " " * 9
BY_FLOPS = f"by FLOPs at {ASSUMED_MFU:.0%} of the peak"


def lines_of(planned: Sequence[Planned], *, one_by_one: bool = False) -> Iterator[str]:
    """The plan, and as the last line its sums. `one_by_one`: each step, not groups of many."""
    steps = alike(planned)
    if one_by_one or len(steps) <= ONE_BY_ONE:
        for items in steps:
            yield from _lines_of_step(items)
    else:
        for group in groups_of(planned):
            yield from _lines_of_step(group.items) if len(group.steps) == 1 else _lines_of_group(group)
    yield summary_of(planned)


def summary_of(planned: Sequence[Planned]) -> str:
    """One line: "499 to run, 1 to reuse (2.1 TB); from 2 data sets: 6.1 TB, under …; expected 3 h 20 min, …"."""
    reused = sum(item.bytes or 0 for item in planned if item.action is Action.REUSE)
    size = f", {readable_bytes(reused)} reused" if reused else ""
    total = total_to_compute(planned)
    origins = total_of_lineages(item.node for item in planned).describe()
    counts = f"{counts_of(planned)}{size}" or "nothing selected"
    return "; ".join(filter(None, (counts, origins, describe_total(total))))


def describe_total(total: Total) -> str:
    """A phrase: "expected 3 h 20 min one after another, 120 chip-hours, $504.00; 4 of 9 have no estimate"."""
    if not total.known:
        return ""
    after = " one after another" if total.known > 1 else ""
    hours = f", {total.device_hours:,.1f} chip-hours" if total.device_hours else ""
    unpriced = f" and {total.unpriced_hours:,.1f} chip-hours without a price" if total.unpriced_hours else ""
    price = f", ${total.dollars:,.2f}{unpriced}" if total.dollars else ""
    count = total.known + total.unknown
    flops = f"; {total.by_flops:,} of {count:,} {BY_FLOPS}" if total.by_flops else ""
    unknown = f"; {total.unknown:,} of {count:,} have no estimate" if total.unknown else ""
    return f"expected {readable_duration(total.compute_s)}{after}{hours}{price}{flops}{unknown}"


def describe_expected(expected: Expected) -> str:
    """A phrase: "expected 3 min 20 s, 1.2 chip-hours, $5.04 (the median of 4 outputs)"."""
    hours = f", {expected.device_hours:,.1f} chip-hours" if expected.device_hours else ""
    price = f", ${expected.dollars:,.2f}" if expected.dollars is not None else ""
    return f"expected {readable_duration(expected.compute_s)}{hours}{price} ({_rests_on(expected.outputs)})"


def _rests_on(outputs: int) -> str:
    if outputs == 0:
        return BY_FLOPS
    return f"the median of {outputs} outputs" if outputs > 1 else "as the last output"


def describe_earlier(item: Planned) -> str:
    """A phrase that names the earlier output with which a step is compared; "" without one."""
    if item.why is None:
        return ""
    mark = item.why.earlier
    finished = datetime.fromtimestamp(mark.finished_s, UTC).strftime(" of %Y-%m-%d") if mark.finished_s else ""
    return f"compared with {mark.name}-{mark.version}{finished}"


def _lines_of_step(items: Sequence[Planned]) -> Iterator[str]:
    """One output, or the partitions of one step with one action for one reason."""
    first, path = items[0], items[0].observed.path
    if first.node.key is not None:
        path = f"{path.rpartition('/')[0]}  {_listed([str(item.node.key) for item in items])}"
    yield f"{first.action:8} {path}"
    yield from (f"{INDENT}{line}" for line in first.reason.splitlines())
    if (origin := first.node.step.origin) is not None:
        yield f"{INDENT}{describe_origin(origin)}"
    if earlier := describe_earlier(first):
        yield f"{INDENT}{earlier}"
    if first.expected is not None:
        yield f"{INDENT}{describe_expected(first.expected)}{' each' if len(items) > 1 else ''}"
    yield from _site(items)


def _listed(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - SHOWN_KEYS} more" if len(keys) > SHOWN_KEYS else ""
    return f"{len(keys)} partitions: {', '.join(keys[:SHOWN_KEYS])}{more}" if len(keys) > 1 else f"[{keys[0]}]"


def _site(items: Sequence[Planned]) -> Iterator[str]:
    sites = [item.site for item in items if item.site is not None]
    if sites:
        yield f"{INDENT}{describe_sites(sites)}"


def _lines_of_group(group: Group) -> Iterator[str]:
    steps, outputs = group.steps, group.items
    count = f"{len(steps):,} step{'s' * (len(steps) != 1)}"
    if len(outputs) > len(steps):
        count += f", {len(outputs):,} partitions"
    size = f", {readable_bytes(group.bytes)}" if group.bytes else ""
    reason = group.reason.replace("\n", f"\n{INDENT}")
    yield from f"{group.action:8} {count}{size}: {reason}".splitlines()
    more = f" and {len(steps) - SHOWN_STEPS:,} more" if len(steps) > SHOWN_STEPS else ""
    yield f"{INDENT}{', '.join(steps[:SHOWN_STEPS])}{more}"
    if downloaded := total_of_origins(group.origins).describe():
        yield f"{INDENT}{downloaded}"
    if total := describe_total(group.total):
        yield f"{INDENT}{total}"
    yield from _site(outputs)
