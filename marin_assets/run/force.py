"""`--force STEP`: withdraw complete outputs before the run, and report the drift of their readers after it."""

from __future__ import annotations

from collections.abc import Sequence

from marin_assets.plan.plan import Kind, Planned
from marin_assets.run.options import FailedError
from marin_assets.run.output import print_stderr
from marin_assets.step.graph import Graph
from marin_resources.drift.drift import Kind as Drift
from marin_resources.drift.drift import describe
from marin_resources.host.process import user_name
from marin_resources.storage.output.store import Store


def withdraw_forced(planned: Sequence[Planned], store: Store) -> None:
    """Withdraw the complete outputs that are forced. Raises FailedError for one that cannot be."""
    forced = [item for item in planned if item.kind is Kind.FORCED]
    if not forced:
        return
    # late, for its weight: most runs force nothing
    from marin_resources.storage.collect.errors import KeptError
    from marin_resources.storage.collect.invalidate import invalidate_output
    from marin_resources.storage.output.restore import restore_output

    for item in forced:
        if item.observed.collected:
            restore_output(store, store.locate(item.node.output))
        try:
            invalidate_output(store, item.node.output, by=user_name() or "someone", why="forced")
        except KeptError as error:
            raise FailedError(f"{item.label!r} is not computed again: {error}.") from None
        print_stderr(f"{item.label}: withdrawn, to be computed again; its files go to .marin/aside")


def report_drift(planned: Sequence[Planned], graph: Graph, store: Store) -> list[Planned]:
    """Print the reused outputs that drift now, as their inputs are other ones. Returns their plan."""
    forced = {item.node.output for item in planned if item.kind is Kind.FORCED}
    readers = [item.node for item in planned if not forced.isdisjoint(item.node.inputs.values()) and item.observed.done]
    if not readers:
        return []
    from marin_assets.plan.prepare import plan_again

    drifting = [
        item for item in plan_again(graph, store, readers) if any(drift.kind is Drift.INPUT for drift in item.drift)
    ]
    for item in drifting:
        print_stderr(f"{item.label}: {describe(item.drift)}")
    return drifting
