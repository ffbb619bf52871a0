"""Draw a DAG as inline SVG: layers from top to bottom, each node a link. No library, no network, reproducible bytes.

A small version of Sugiyama, Tagawa and Toda (1981): longest-path layers, a waypoint where an edge crosses a layer,
order by barycentre, then positions as close to the neighbours' mean as the widths allow.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

CHARACTER, PADDING, NODE_HEIGHT, LAYER_HEIGHT, GAP = 7.6, 44, 46, 82, 26
SWEEPS = 12
BROAD = 1000
"""Width of a picture beyond which a page gives it more room than its text has."""


@dataclass(frozen=True, kw_only=True)
class DagNode:
    key: str
    name: str
    """Name of the step, shown as a tooltip."""
    title: str
    subtitle: str
    link: str
    state: str
    """CSS class: "held", "failed" or "plain"."""
    parents: tuple[str, ...]

    @property
    def width(self) -> float:
        return CHARACTER * max(len(self.title), len(self.subtitle)) + PADDING


@dataclass
class Layout:
    layers: list[list[str]]
    widths: dict[str, float]
    edges: list[tuple[str, str]]
    """Edges between adjacent layers. Their ends include waypoints."""
    x: dict[str, float] = field(default_factory=dict)
    """Horizontal centre of each node and waypoint."""


def draw_dag(nodes: Sequence[DagNode]) -> str:
    """Return the SVG element. Parents that are not among the nodes are left out."""
    layout = lay_out(nodes)
    left_edge = min(layout.x[key] - layout.widths[key] / 2 for key in layout.x)
    width = max(layout.x[key] + layout.widths[key] / 2 for key in layout.x) - left_edge + 4
    height = LAYER_HEIGHT * (len(layout.layers) - 1) + NODE_HEIGHT + 4
    top = {key: LAYER_HEIGHT * depth + 2 for depth, layer in enumerate(layout.layers) for key in layer}
    centre = {key: x - left_edge + 2 for key, x in layout.x.items()}
    waypoints = set(layout.x) - {node.key for node in nodes}
    edges = "".join(draw_edge(a, b, centre, top, waypoints) for a, b in layout.edges)
    boxes = "".join(draw_node(node, centre[node.key], top[node.key]) for node in nodes)
    names = "dag broad" if width > BROAD else "dag"
    return (
        f'<svg class="{names}" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" role="img" '
        f'aria-label="Steps and their inputs">{edges}{boxes}</svg>'
    )


def lay_out(nodes: Sequence[DagNode]) -> Layout:
    keys = {node.key for node in nodes}
    parents = {node.key: [p for p in node.parents if p in keys] for node in nodes}
    depth = depths(parents)
    layers: list[list[str]] = [[] for _ in range(max(depth.values()) + 1)]
    for node in nodes:
        layers[depth[node.key]].append(node.key)
    layout = Layout(layers=layers, widths={node.key: node.width for node in nodes}, edges=[])
    for child, above in parents.items():
        for parent in above:
            chain = [parent, *(f"{parent}>{child}@{d}" for d in range(depth[parent] + 1, depth[child])), child]
            for waypoint, d in zip(chain[1:-1], range(depth[parent] + 1, depth[child]), strict=True):
                layers[d].append(waypoint)
                layout.widths[waypoint] = 12.0
            layout.edges += itertools.pairwise(chain)
    order_layers(layout)
    place(layout)
    return layout


def depths(parents: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return the layer of each node: the longest path from a source. A source is one layer above its first reader."""
    depth: dict[str, int] = {}

    def of(key: str) -> int:
        if key not in depth:
            depth[key] = max((of(parent) + 1 for parent in parents[key]), default=0)
        return depth[key]

    for key in parents:
        of(key)
    for key in parents:
        children = [depth[child] for child in parents if key in parents[child]]
        if not parents[key] and children:
            depth[key] = min(children) - 1
    return depth


def neighbours_of(layout: Layout) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    above: dict[str, list[str]] = {key: [] for key in layout.widths}
    below: dict[str, list[str]] = {key: [] for key in layout.widths}
    for a, b in layout.edges:
        above[b].append(a)
        below[a].append(b)
    return above, below


def order_layers(layout: Layout) -> None:
    """Sort each layer by the mean place of its neighbours, in sweeps down and up, so that fewer edges cross."""
    above, below = neighbours_of(layout)
    for sweep in range(SWEEPS):
        neighbours = above if sweep % 2 == 0 else below
        layers = layout.layers if sweep % 2 == 0 else layout.layers[::-1]
        for fixed, layer in itertools.pairwise(layers):
            rank = {key: (place + 0.5) / len(fixed) for place, key in enumerate(fixed)}
            own = {key: (place + 0.5) / len(layer) for place, key in enumerate(layer)}
            layer.sort(key=lambda key: mean([rank[n] for n in neighbours[key]], own[key]))


def place(layout: Layout) -> None:
    """Move every node towards the mean of its neighbours, and keep the order and the gaps of its layer."""
    above, below = neighbours_of(layout)
    for layer in layout.layers:
        spread(layer, layout, dict.fromkeys(layer, 0.0))
    for _ in range(SWEEPS):
        for layer in [*layout.layers, *layout.layers[::-1]]:
            desired_x = {key: mean([layout.x[n] for n in above[key] + below[key]], layout.x[key]) for key in layer}
            spread(layer, layout, desired_x)


def spread(layer: Sequence[str], layout: Layout, desired_x: Mapping[str, float]) -> None:
    """Place a layer as close to the wanted places as widths allow: the mean of shifting right and shifting left."""
    rightwards: dict[str, float] = {}
    leftwards: dict[str, float] = {}
    for keys, positions, sign in ((layer, rightwards, 1), (layer[::-1], leftwards, -1)):
        before = None
        for key in keys:
            x = desired_x[key]
            if before is not None:
                edge = positions[before] + sign * ((layout.widths[before] + layout.widths[key]) / 2 + GAP)
                x = max(x, edge) if sign > 0 else min(x, edge)
            positions[key], before = x, key
    layout.x.update({key: (rightwards[key] + leftwards[key]) / 2 for key in layer})


def mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def draw_edge(a: str, b: str, centre: Mapping[str, float], top: Mapping[str, int], waypoints: set[str]) -> str:
    begin, end = top[a] + NODE_HEIGHT, top[b]
    x1, x2, middle = centre[a], centre[b], (begin + end) / 2
    # A waypoint has a node's height: the line crosses it vertically, and the arrow is only at the last part.
    onwards = f" V{end + NODE_HEIGHT}" if b in waypoints else ""
    path = f"M{x1:.1f},{begin} C{x1:.1f},{middle:.1f} {x2:.1f},{middle:.1f} {x2:.1f},{end}{onwards}"
    arrow = "" if b in waypoints else f'<path class="arrow" d="M{x2 - 4:.1f},{end - 7} l4,7 l4,-7 z"/>'
    return f'<path class="edge" d="{path}"/>{arrow}'


def draw_node(node: DagNode, x: float, y: int) -> str:
    left_edge, name = x - node.width / 2, escape(f"{node.name}-{node.subtitle}")
    return (
        f'<a href="{escape(node.link)}"><g class="node {node.state}"><title>{name}</title>'
        f'<rect x="{left_edge:.1f}" y="{y}" width="{node.width:.1f}" height="{NODE_HEIGHT}" rx="8"/>'
        f'<circle cx="{left_edge + node.width - 11:.1f}" cy="{y + 11}" r="3.5"/>'
        f'<text class="title" x="{x:.1f}" y="{y + 20}">{escape(node.title)}</text>'
        f'<text class="subtitle" x="{x:.1f}" y="{y + 36}">{escape(node.subtitle)}</text></g></a>'
    )
