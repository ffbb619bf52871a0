"""Checks of the outputs that a plan reuses, by the run: that they exist, are whole, and hold their expectations.

Of a large plan the run checks the outputs that it reads and those that were requested, and none above these.
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
    reused = [item for item in planned if item.action is Action.REUSE]
    if any(item.observed.listed for item in reused):
        near = _near(planned)
        reused = [item for item in reused if item.node.output in near]
    looked = store.look(item.node.output for item in reused if item.observed.listed)
    return {item.node.output: looked.get(item.node.output, item.observed) for item in reused}


def needs_recheck(nodes: Sequence[Node], looked: dict[Output, Observed], store: Store) -> set[Output]:
    """The outputs among `looked` that are not complete, lack files, or miss an expectation. A run of Dagster's takes
    them: there each failing check has its event, and incomplete outputs are computed."""
    of_output = [(node, looked[node.output]) for node in nodes if node.output in looked]
    if is_local(store.prefix):
        right = [_is_right(node, seen) for node, seen in of_output]
    else:
        with ThreadPoolExecutor(THREADS) as pool:
            right = list(pool.map(lambda pair: _is_right(*pair), of_output))
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
            expectation.warn or expectation.holds(seen.result) for expectation in node.step.expectations
        )
    except ControlFileError:
        return False
