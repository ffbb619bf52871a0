"""The tags by which Dagster compares a materialization with its code and its inputs.

Dagster writes them for what an asset returns. An event that is logged or reported otherwise needs them too: without the
tags of an input, Dagster takes the input for a new dependency, and the output for unsynced.
"""

from __future__ import annotations

from collections.abc import Mapping

from marin_assets.catalog.asset_key import key_of
from marin_assets.step.graph import Node

DATA_VERSION = "dagster/data_version"
"""The version of the step, for all of its partitions. Dagster looks this tag up by partition, and no code version."""
CODE_VERSION = "dagster/code_version"
INPUT_VERSION, INPUT_EVENT = "dagster/input_data_version", "dagster/input_event_pointer"
DRIFT = "marin/drift"
"""The tag of an output that drifts; its value is "true"."""
NO_EVENT = "NULL"
"""Dagster's pointer to no event: it then compares an input's versions alone."""


def version_tags(node: Node) -> Mapping[str, str]:
    """The tags of an event of this node: its version, and those of the nodes that it reads."""
    tags = {CODE_VERSION: node.version.hash, DATA_VERSION: node.version.hash}
    for source in node.dependencies:
        key = "/".join(key_of(source))
        tags |= {f"{INPUT_VERSION}/{key}": source.version.hash, f"{INPUT_EVENT}/{key}": NO_EVENT}
    return tags
