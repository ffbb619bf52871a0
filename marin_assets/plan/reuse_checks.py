"""What a run looks at of the outputs that its plan reuses: that they are there, whole, and hold their expectations.

Of a large plan this is done for what the run reads and for what was asked for, and not for what is above.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor

from marin_assets.plan.plan import Action, Planned
from marin_assets.step.graph import Node
from marin_resources.storage.output.store import Store
from marin_resources.storage.output.verify import verify_listing
from marin_resources.storage.paths import is_local
from marin_resources.types.output import Observed, Output
from marin_resources.types.versioned_json import ControlFileError

THREADS = 32


def look_at_reused(planned: Sequence[Planned], store: Store) -> dict[Output, Observed]:
    """The reused outputs as a look at their files finds them, to the extent that a run looks."""
    wanted = [item for item in planned if item.action is Action.REUSE]
    if any(item.observed.listed for item in wanted):
        near = _near(planned)
        wanted = [item for item in wanted if item.node.output in near]
    looked = store.look(item.node.output for item in wanted if item.observed.listed)
    return {item.node.output: looked.get(item.node.output, item.observed) for item in wanted}


def needs_recheck(nodes: Sequence[Node], looked: dict[Output, Observed], store: Store) -> set[Output]:
    """Those of the outputs that were looked at that are not complete, lack files, or miss an expectation. A run of
    Dagster's takes them: there each failing check has its event, and what is not complete is computed."""
    of_output = [(node, looked[node.output]) for node in nodes if node.output in looked]
    if is_local(store.prefix):
        right = [_is_right(node, seen) for node, seen in of_output]
    else:
        with ThreadPoolExecutor(THREADS) as pool:
            right = list(pool.map(lambda each: _is_right(*each), of_output))
    return {node.output for (node, _), holds in zip(of_output, right, strict=True) if not holds}


def _near(planned: Sequence[Planned]) -> Collection[Output]:
    """The outputs that the computed steps read, and those that no other step of the plan reads."""
    read_by_runs = {
        output for item in planned if item.action is not Action.REUSE for output in item.node.inputs.values()
    }
    read = {output for item in planned for output in item.node.inputs.values()}
    return read_by_runs | {item.node.output for item in planned if item.node.output not in read}


def _is_right(node: Node, seen: Observed) -> bool:
    if not seen.done:
        return False
    try:
        return verify_listing(seen.path, seen.record).ok and all(
            each.warn or each.holds(seen.result) for each in node.step.expectations
        )
    except ControlFileError:
        return False
