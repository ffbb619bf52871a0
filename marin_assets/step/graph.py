"""Steps as an ordered DAG: the given steps and all their inputs, inputs first, each version once.

It uses no recursion and takes time linear in the number of steps and references: chains of thousands of steps and
DAGs of tens of thousands take seconds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from marin_assets.step.origin import NONE, Origins, together
from marin_assets.step.partitions.reads import Read
from marin_assets.step.placement import refuse_overlaps
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, InputName, StepMarker
from marin_assets.step.version import Inputs, Version, compute_version, plain_leaves, read_inputs
from marin_resources.types.output import Output


@dataclass(frozen=True, eq=False)
class Node:
    """One step in the graph, with the nodes that it reads."""

    step: Step
    version: Version
    dependencies: tuple[Node, ...]
    """Nodes that must be complete first, in the order of the config, each once."""
    pseudo_dependencies: tuple[Node, ...]
    """Nodes that enter the version but need not be complete."""
    reads: tuple[tuple[Node, Read], ...]
    """The dependencies, with the partitions that are read of each; one may be read in several ways."""
    origins: Origins
    """The data sets that it is computed from, its own among them, by the name of the step that downloads each."""
    key: str | None = None
    """The key of one partition: see `at`."""

    @property
    def name(self) -> str:
        return self.step.name

    @cached_property
    def output(self) -> Output:
        """The node's output, as storage knows it: without the step. Of a node with partitions: its folder of them."""
        whole = Output(
            name=self.name,
            version=self.version.hash,
            identity=self.version.identity,
            override=self.step.override_output_path,
        )
        return whole if self.key is None else whole.at(self.key)

    @cached_property
    def inputs(self) -> Mapping[str, Output]:
        """The outputs that must be complete first, by label; of a node with partitions, those of its key."""
        outputs = [
            source.output if key is None else source.output.at(key)
            for source, read in self.reads
            for key in read.keys(self.key)
        ]
        return {output.label: output for output in outputs}

    def at(self, key: str) -> Node:
        """One partition of this node, as a node of its own. Raises ConfigError for a key that its set cannot have."""
        if self.step.partitions is None:
            raise ConfigError(f"Step {self.name!r} has no partitions. Leave out the key {key!r}.")
        try:
            self.step.partitions.require(key)
        except ConfigError as error:
            raise ConfigError(f"Step {self.name!r}: {error}") from None
        return dataclasses.replace(self, key=key)

    def __repr__(self) -> str:
        return f"Node({self.output.relative()!r})"


@dataclass(frozen=True, eq=False)
class Graph:
    """The nodes, inputs before readers."""

    nodes: tuple[Node, ...]
    by_step: Mapping[StepMarker, Node]
    """Each step to its node; equal steps share one."""
    drift: tuple[str, ...]
    """One sentence for each pair of steps with one version that differ in other fields."""

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, step: StepMarker) -> Node:
        return self.by_step[step]

    def downstream(self, node: Node) -> list[Node]:
        """Every node that reads `node`, directly or indirectly."""
        reached = {node}
        for other in self.nodes:
            if not reached.isdisjoint((*other.dependencies, *other.pseudo_dependencies)):
                reached.add(other)
        return [other for other in self.nodes if other in reached and other is not node]


def build_graph(steps: Iterable[Step | InputName]) -> Graph:
    """The DAG of these steps and all their inputs. Raises ConfigError for a bad config or two versions of one name."""
    roots = [_step_of(root) for root in steps]
    inputs, order = _visit(roots)
    versions: dict[Step, Version] = {}
    by_step: dict[StepMarker, Node] = {}
    by_version: dict[str, Node] = {}
    drift: list[str] = []
    for step in order:
        _refuse_cycle(step, inputs[step], versions)
        version = versions[step] = compute_version(step.name, inputs[step], versions)
        if (equal := by_version.get(version.text)) is not None:
            _require_same_outputs(equal.step, step)
            drift.extend(_difference(equal.step, step))
            by_step[step] = equal
            continue
        dependencies = tuple(dict.fromkeys(by_step[dep] for dep in inputs[step].dependencies))
        pseudo_dependencies = tuple(dict.fromkeys(by_step[dep] for dep in inputs[step].pseudo_dependencies))
        own = NONE if step.origin is None else {step.name: step.origin}
        node = Node(
            step,
            version,
            dependencies,
            pseudo_dependencies,
            tuple((by_step[dep], read) for dep, read in inputs[step].reads),
            together((own, *(node.origins for node in (*dependencies, *pseudo_dependencies)))),
        )
        by_version[version.text] = by_step[step] = node
    graph = Graph(tuple(by_version.values()), by_step, tuple(dict.fromkeys(drift)))
    _refuse_collisions(graph)
    refuse_overlaps((node.output.relative(), node.name) for node in graph)
    return graph


def _step_of(root: Step | InputName) -> Step:
    step = root.step if isinstance(root, InputName) else root
    if not isinstance(step, Step):
        raise ConfigError(f"Got {root!r} where a Step was expected. Pass the steps themselves.")
    return step


def _visit(roots: list[Step]) -> tuple[dict[Step, Inputs], list[Step]]:
    """The inputs of every step, and the steps ordered with inputs first: depth first, in the order of the configs."""
    inputs: dict[Step, Inputs] = {}
    order: list[Step] = []
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        step, inputs_done = stack.pop()
        if inputs_done:
            order.append(step)
        elif step not in inputs:
            try:
                inputs[step] = read_inputs(step)
            except ConfigError as error:
                raise error.at(step.line) from None
            stack.append((step, True))
            above = (*inputs[step].dependencies, *inputs[step].pseudo_dependencies)
            stack.extend((other, False) for other in reversed(above) if other not in inputs)
    return inputs, order


def _refuse_cycle(step: Step, inputs: Inputs, before: Mapping[Step, Version]) -> None:
    """Raise ConfigError for an input that is not before its reader: its own inputs lead back to the reader."""
    for source in (*inputs.dependencies, *inputs.pseudo_dependencies):
        if source not in before:
            circle = "itself" if source is step else f"{source.name!r}, whose inputs lead back to it"
            raise ConfigError(
                f"Step {step.name!r} reads {circle}. Expected inputs that are computed before it. Read another step, "
                "or leave the input out."
            ).at(step.line)


def _difference(first: Step, second: Step) -> Iterator[str]:
    """The differences between two steps of one version: they do not enter identity, but may surprise the author."""
    if first.fn is not second.fn:
        yield (
            f"Two steps named {first.name!r} have one version and run different functions, "
            f"{_name(first.fn)!r} and {_name(second.fn)!r}; the first is used. Give one of them another name."
        )
    if first.origin != second.origin:
        yield (
            f"Two steps named {first.name!r} have one version and different origins, {first.origin!r} and "
            f"{second.origin!r}; the first is used. State the same origin for both."
        )
    values, other_values = dict(plain_leaves(first.config)), dict(plain_leaves(second.config))
    for field in sorted(values.keys() | other_values.keys()):
        if values.get(field) != other_values.get(field):
            yield (
                f"Two steps named {first.name!r} have one version and differ in the unversioned field {field!r}, "
                f"{values.get(field)!r} and {other_values.get(field)!r}; the first is used. Wrap it in versioned() if "
                "it matters."
            )


def _require_same_outputs(first: Step, second: Step) -> None:
    if first.partitions != second.partitions:
        raise ConfigError(
            f"Two steps named {first.name!r} have one version and different partitions, {first.partitions} and "
            f"{second.partitions}. Use one of the two steps everywhere."
        ).at(second.line)
    if first.override_output_path != second.override_output_path:
        raise ConfigError(
            f"Two steps named {first.name!r} have one version and different output paths, "
            f"{first.override_output_path!r} and {second.override_output_path!r}. Use one of the two steps everywhere."
        ).at(second.line)


def _name(fn: object) -> str:
    return f"{getattr(fn, '__module__', '?')}:{getattr(fn, '__qualname__', fn)}"


def _refuse_collisions(graph: Graph) -> None:
    """Raise ConfigError for two versions of one name, or two versions with one path: six hex digits can collide."""
    by_path: dict[str, Node] = {}
    by_name: dict[str, Node] = {}
    for node in graph:
        for place, index in ((node.version.path, by_path), (node.name, by_name)):
            other = index.setdefault(place, node)
            if other is node:
                continue
            if index is by_path:
                raise ConfigError(f"Two different versions share the path {place!r}. Rename one of the steps.").at(
                    node.step.line
                )
            raise ConfigError(
                f"Two steps named {place!r} have different versions, {other.version.hash} and {node.version.hash}. "
                f"They differ in {explain_difference(other, node)}. Give one of them another name."
            ).at(node.step.line)


def explain_difference(first: Node, second: Node) -> str:
    """The versioned fields or inputs in which two versions differ, as a phrase."""
    identity, other_identity = first.version.as_dict(), second.version.as_dict()
    fields, other_fields = identity["config"], other_identity["config"]
    differing = sorted(key for key in fields.keys() | other_fields.keys() if fields.get(key) != other_fields.get(key))
    phrases = [f"{key} ({fields.get(key)!r} and {other_fields.get(key)!r})" for key in differing]
    if identity["dependencies"] != other_identity["dependencies"]:
        phrases.append("the versions of their inputs")
    return ", ".join(phrases) or "their inputs"
