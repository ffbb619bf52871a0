"""Mark outputs that were removed from the store as missing in Dagster.

In:  nodes whose newest materialization is of their version.   Out: those that Dagster shows as missing now.

Dagster 1.13 has one event after which an asset is missing: the wipe, which its UI has as a button too. A
materialization with other versions makes it unsynced and no more, an observation of an asset that can be materialized
is ignored, and a failed check leaves it fresh. A wipe hides the asset's earlier materializations and removes the
results of its checks, which were those of the output that is gone; the logs of runs keep their events. Of an asset with
partitions only those are wiped that have vanished: the history of the others stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import dagster as dg

from marin_assets.assets.factory import asset_key
from marin_assets.assets.sync.sync import AT_ONCE, report_unknown
from marin_assets.step.graph import Node
from marin_resources.dagster_fixes.partition_wipes import wipe_partitions
from marin_resources.storage.output.state_summary import UNFINISHED, state_of
from marin_resources.storage.output.store import Store


def mark_missing(instance: dg.DagsterInstance, nodes: Sequence[Node], store: Store) -> Iterator[Node]:
    """Wipe these nodes, and yield them. Outputs that are complete again, or are being computed again, are left out.

    A run may complete an output, and report it, right before the wipe. So its state is read afterwards too, and it is
    reported again.
    """
    for begin in range(0, len(nodes), AT_ONCE):
        batch = nodes[begin : begin + AT_ONCE]
        looked = store.look(node.output for node in batch)
        gone = [node for node in batch if state_of(looked[node.output]) in UNFINISHED]
        _wipe(instance, gone)
        back = set(report_unknown(instance, gone, store))
        yield from (node for node in gone if node not in back)


def _wipe(instance: dg.DagsterInstance, nodes: Sequence[Node]) -> None:
    instance.wipe_assets([asset_key(node) for node in nodes if node.key is None])
    keys: dict[dg.AssetKey, list[str]] = {}
    for node in nodes:
        if node.key is not None:
            keys.setdefault(asset_key(node), []).append(node.key)
    for asset, asset_keys in keys.items():
        wipe_partitions(instance, asset, asset_keys)
