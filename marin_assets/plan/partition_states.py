"""The states of the partitions of a step: complete ones by their markers, the others by a look at each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from marin_assets.plan.output_state import State, state_of
from marin_assets.step.graph import Node
from marin_resources.output import Observed
from marin_resources.storage.output.store import Store, other_version_message


@dataclass(frozen=True, kw_only=True)
class PartitionState:
    """The state of one partition."""

    key: str
    state: State
    bytes: int | None = None
    files: int | None = None
    finished_s: int | None = None
    """Seconds since 1970."""
    error: str = ""
    """Why it failed or is blocked; who computes it."""


def partition_states(node: Node, store: Store, keys: Iterable[str] = ()) -> list[PartitionState]:
    """The states of these partitions, of those in the code, and of all that have a folder; in the order of the keys."""
    assert node.step.partitions is not None
    there = store.partitions(node.output)
    done = store.done_partitions(node.output, there)
    wanted = list(dict.fromkeys([*(node.step.partitions.fixed_keys or ()), *keys, *there]))
    folders = frozenset(there)
    outputs = {key: node.output.at(key) for key in wanted if key in folders and key not in done}
    looked = store.look(outputs.values())
    found = []
    for key in wanted:
        if key in done:
            size = done[key]
            found.append(
                PartitionState(
                    key=key, state=State.COMPLETE, bytes=size.bytes, files=size.files, finished_s=size.finished_s
                )
            )
        elif key in outputs:
            found.append(_state_of(node, key, looked[outputs[key]]))
        else:
            found.append(PartitionState(key=key, state=State.MISSING))
    return found


def _state_of(node: Node, key: str, observed: Observed) -> PartitionState:
    state, record = state_of(observed), observed.record or {}
    size = record.get("manifest") or {}
    error = str(record.get("error") or "was stopped") if state is State.FAILED else ""
    if state is State.BLOCKED:
        error = observed.damage or other_version_message(node.output.at(key), observed.path)
    if state is State.RUNNING and observed.holder is not None:
        error = f"by {observed.holder.describe()}"
    if state is State.DEAD:
        error = "its worker is gone; run again to continue"
    return PartitionState(key=key, state=state, bytes=size.get("bytes"), files=size.get("files"), error=error)
