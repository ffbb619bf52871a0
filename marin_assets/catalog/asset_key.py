"""A step's name to its asset key and group: the subject first, the kind of output last.

"tokenized/fineweb"             group fineweb, key fineweb/tokenized
"attributes/fineweb/quality"    group fineweb, key fineweb/attributes/quality
"hello_world/stats"             group hello_world, key hello_world/stats

A bucket is browsed by kind, so a name starts with it. A box in Dagster's lineage shows the last segment of the key
and nothing else, so there the kind is last. The key depends on the name alone, never on the experiments that are
loaded: a step that several share is one asset.
"""

from __future__ import annotations

import re

from marin_assets.step.graph import Node

ATTRIBUTES = "attributes"
OUTPUT_KINDS = frozenset(
    {
        *("raw", "documents", ATTRIBUTES, "clusters", "examples", "classifiers", "selected", "consolidated"),
        *("held_out", "decontaminated", "tokenizers", "tokenized", "checkpoints", "evaluation"),
        *("generated", "report", "snapshots", "checkpoint_evaluation", "comparisons", "perplexity", "losses"),
        *("samples", "labels", "datashop", "uploads"),
    }
)
"""First segments that name a kind of output: Marin's, and those of the quickstart.

A kind added here changes the keys of the assets that it names. Their outputs are reused; their history in Dagster
stays with the old key.
"""


def key_of(node: Node) -> tuple[str, ...]:
    """The segments of the asset's key: the step's own, or its name's with the kind of output behind the subject."""
    if node.step.key:
        return tuple(node.step.key)
    subject, label = _subject_and_label(node.name)
    return (*subject, *label)


def group_of(node: Node) -> str:
    """The asset's group: the subject of the step's name, or the first segment of the step's own key.

    In one group, no two names have the same label. Dagster takes letters, digits and "_" in a group's name.
    """
    subject = (node.step.key[0],) if node.step.key else _subject_and_label(node.name)[0]
    return re.sub(r"[^A-Za-z0-9_]", "_", "_".join(subject))


def selection_of(node: Node) -> str:
    """The node's asset alone, in Dagster's selection syntax; with a "+" before it, all that it needs too."""
    return f'key:"{"/".join(key_of(node))}"'


def _subject_and_label(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The subject of the output, and its label: the kind, and for an attribute the last segment, which names it."""
    first, *rest = name.split("/")
    if first not in OUTPUT_KINDS or not rest:
        return (first,), tuple(rest)
    if first == ATTRIBUTES and len(rest) > 1:
        return tuple(rest[:-1]), (first, rest[-1])
    return tuple(rest), (first,)
