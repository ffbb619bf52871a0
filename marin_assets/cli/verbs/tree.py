"""Print the selected steps as a tree: final outputs at the top, below each step what it reads. Looks at no output.

Without a selection, all steps. A step is shown with its inputs once, and later as "(shown above)"; an input that is
not waited for as "(not waited for)".
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator

from marin_assets.catalog.code_location import select_nodes
from marin_assets.run.options import add_script, add_selection
from marin_assets.run.output import print_line
from marin_assets.step.graph import Node

LEVELS = 30
"""Levels whose lines are drawn. Deeper in, the outermost are "…", or a chain of thousands of steps is megabytes."""
WIDTH = len("├── ")


def add_options(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    add_script(parser)


def run(options: argparse.Namespace) -> int:
    _, nodes = select_nodes(options.selection, options.experiment, options.script)
    for line in lines_of(nodes):
        print_line(line)
    return 0


def lines_of(nodes: Iterable[Node]) -> Iterator[str]:
    """A line for each reference to a step; as many as the graph has edges and final outputs."""
    shown: set[Node] = set()
    # of each line to come: what is drawn before its name, what is drawn below it, the node, and its remark
    pending = [("", "", node, "") for node in reversed(_final(nodes))]
    while pending:
        branch, bars, node, remark = pending.pop()
        if node in shown:
            yield f"{branch}{node.name}{remark}" + " (shown above)"
            continue
        shown.add(node)
        yield f"{branch}{node.name}{remark}"
        pending += reversed(list(_inputs(node, bars)))


def _inputs(node: Node, bars: str) -> Iterator[tuple[str, str, Node, str]]:
    read = [*((source, "") for source in node.dependencies)]
    read += [(source, " (not waited for)") for source in node.pseudo_dependencies]
    drawn = bars if len(bars) < LEVELS * WIDTH else f"…{bars[-LEVELS * WIDTH + WIDTH + 1 :]}"
    for i, (source, remark) in enumerate(read):
        last = i == len(read) - 1
        yield drawn + ("└── " if last else "├── "), drawn + ("    " if last else "│   "), source, remark


def _final(nodes: Iterable[Node]) -> list[Node]:
    """The nodes that no other of them reads, directly or through others."""
    among = list(nodes)
    read: set[Node] = set()
    edge = [source for node in among for source in (*node.dependencies, *node.pseudo_dependencies)]
    while edge:
        node = edge.pop()
        if node not in read:
            read.add(node)
            edge += [*node.dependencies, *node.pseudo_dependencies]
    return [node for node in among if node not in read]
