"""A step's name to its asset key and group: the subject first, then the kind of output, then what distinguishes them.

"tokenized/fineweb"             group fineweb, key fineweb/tokenized, label tokenized
"attributes/fineweb/quality"    group fineweb, key fineweb/attributes/quality, label quality
"checkpoints/sweep/lr=0.001"    group sweep, key sweep/checkpoints/lr=0.001, label lr=0.001
"two_steps/stats"               group two_steps, key two_steps/stats, label stats
"documents/chat"                group recipes_chat, key chat/documents: its experiment is the file recipes/chat.py

A bucket is browsed by kind, so a name starts with it. A box in Dagster's lineage shows the last segment of the key
and nothing else, so there the kind is last, or the point of a sweep. All points of a sweep are one group. The key
depends on the name alone, never on the experiments that are loaded: a step that several share is one asset.
"""

from __future__ import annotations

import re

from marin_assets.catalog.experiment_files import folder_of
from marin_assets.step.graph import Node

OUTPUT_KINDS = frozenset(
    {
        *("raw", "documents", "attributes", "clusters", "examples", "classifiers", "selected", "consolidated"),
        *("held_out", "decontaminated", "tokenizers", "tokenized", "checkpoints", "evaluation", "speedruns"),
        *("generated", "report", "snapshots", "checkpoint_evaluation", "comparisons", "perplexity", "losses"),
        *("samples", "labels", "datashop", "uploads", "rows", "questions", "searched", "contamination"),
        *("answers", "judgements", "grades", "checkpoint_perplexity", "scaling_laws", "runs", "forecasts"),
    }
)
"""First segments that name a kind of output: Marin's, and those of the quickstart.

A kind added here changes the keys of the assets that it names. Their outputs are reused; their history in Dagster
stays with the old key.
"""


def key_of(node: Node) -> tuple[str, ...]:
    """The segments of the asset's key: the step's own, or its name's with the kind of output behind the subject."""
    return tuple(node.step.key) if node.step.key else key_of_name(node.name)


def key_of_name(name: str) -> tuple[str, ...]:
    """The key of a step of this name without one of its own."""
    first, *rest = name.split("/")
    if first not in OUTPUT_KINDS or not rest:
        return (first, *rest)
    return (rest[0], first, *rest[1:])


def group_of(node: Node) -> str:
    """The asset's group: the first segment of its key behind the folder of the experiment of that name, and the step's
    part of it.

    Dagster sorts groups by name, so a folder is one block of groups. It takes letters, digits and "_" in a segment. In
    the lineage a group is one box until it is opened.
    """
    subject = re.sub(r"[^A-Za-z0-9_]", "_", key_of(node)[0])
    folder = folder_of(subject)
    group = f"{folder}_{subject}" if folder else subject
    return f"{group}/{node.step.group}" if node.step.group else group


def selection_of(node: Node) -> str:
    """The node's asset alone, in Dagster's selection syntax; with a "+" before it, all that it needs too."""
    return f'key:"{"/".join(key_of(node))}"'
