"""The reasons of a plan against brute force: random graphs are edited at random, and the definitions are compared."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from marin_assets.plan.plan import Kind
from marin_assets.plan.prepare import prepare_plan
from marin_assets.plan.reasons.differences import differences
from marin_assets.plan.record_facts.facts import describe_node, resolved_config
from marin_assets.step.graph import Graph, Node, build_graph
from marin_assets.step.step import Step
from marin_assets.step.values import THIS_OUTPUT_PATH, InputName, output_path_of, versioned
from marin_resources.storage.output.store import Store

CASES = 40
ORDER, WAITS = "(order of inputs)", "(inputs waited for)"


@dataclass(frozen=True, kw_only=True)
class Config:
    inputs: dict[str, Any] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    output_path: str = THIS_OUTPUT_PATH


def work(config: Config) -> None:
    return None


@dataclass(frozen=True)
class Reading:
    """How one field reads an input."""

    name: str
    waits: bool = True
    below: str = ""

    def describe(self) -> str:
        rest = f"/{self.below}" if self.below else ""
        return f"{self.name!r}{rest}{'' if self.waits else ' (not waited for)'}"


@dataclass(frozen=True)
class Definition:
    """A step before it is one."""

    inputs: Mapping[str, Reading]
    values: Mapping[str, int]


Definitions = dict[str, Definition]
"""By name, inputs before readers."""


def random_definitions(draw: random.Random, count: int) -> Definitions:
    found: Definitions = {}
    for i in range(count):
        names = list(found)
        inputs = {f"in{place}": random_reading(draw, names) for place in range(draw.randint(0, 4)) if names}
        found[f"room/s{i}"] = Definition(inputs=inputs, values={"a": draw.randint(0, 2)})
    return found


def random_reading(draw: random.Random, names: list[str]) -> Reading:
    return Reading(name=draw.choice(names), waits=draw.random() < 0.6, below=draw.choice(["", "", "en"]))


def edited(draw: random.Random, before: Definitions) -> Definitions:
    """One to three edits, at steps that may have any place."""
    after = dict(before)
    for _ in range(draw.randint(1, 3)):
        name = draw.choice(list(after))
        after[name] = random_edit(draw, after[name], list(after)[: list(after).index(name)])
    return after


def random_edit(draw: random.Random, step: Definition, above: list[str]) -> Definition:
    inputs, fields = dict(step.inputs), list(step.inputs)
    kind = draw.choice(["value", "add", "remove", "replace", "swap", "wait", "below", "order"])
    one = draw.choice(fields) if fields else None
    if kind == "add" and above:
        return replace(step, inputs={**inputs, f"in{draw.randint(0, 9)}": random_reading(draw, above)})
    if one is None or kind == "value":
        return replace(step, values={**step.values, draw.choice("ab"): draw.randint(3, 9)})
    if kind == "remove":
        del inputs[one]
    elif kind == "swap":
        other = draw.choice(fields)
        inputs[one], inputs[other] = inputs[other], inputs[one]
    elif kind == "order":
        inputs = {name: inputs[name] for name in draw.sample(fields, len(fields))}
    elif kind == "wait":
        inputs[one] = replace(inputs[one], waits=not inputs[one].waits)
    elif kind == "below":
        inputs[one] = replace(inputs[one], below=draw.choice(["de", "fr"]))
    else:
        inputs[one] = random_reading(draw, above)
    return replace(step, inputs=inputs)


def graph_of(definitions: Definitions) -> Graph:
    steps: dict[str, Step] = {}
    for name, each in definitions.items():
        inputs = {place: input_of(steps[reading.name], reading) for place, reading in each.inputs.items()}
        values = {place: versioned(value) for place, value in each.values.items()}
        steps[name] = Step(name=name, fn=work, config=Config(inputs=inputs, values=values))
    return build_graph(steps.values())


def input_of(step: Step, reading: Reading) -> InputName:
    found = output_path_of(step, reading.below) if reading.below else output_path_of(step)
    return found if reading.waits else found.nonblocking()


def publish(store: Store, graph: Graph) -> None:
    for node in graph:
        facts = describe_node(node, store, resolved_config(node, graph, store), {}, None)
        store.publish(store.claim(node.output, attempt=1, resumable=False, run_id=None), facts, {})


def own_changes(was: Definition, now: Definition) -> set[str]:
    """What differs between two definitions of a step, field by field. Of an input that some fields wait for and others
    do not, no record says which."""
    unsure = {
        each.name
        for each in was.inputs.values()
        if each.waits and any(each.name == other.name and not other.waits for other in was.inputs.values())
    }

    def describe(inputs: Mapping[str, Reading], others: Mapping[str, Reading], *, is_was: bool) -> dict[str, str]:
        found = {}
        for name, each in inputs.items():
            same = each.name in unsure and (is_was or (name in others and others[name].name == each.name))
            found[f"inputs.{name}"] = (replace(each, waits=True) if same else each).describe()
        return found

    before = describe(was.inputs, now.inputs, is_was=True)
    before |= {f"values.{name}": str(each) for name, each in was.values.items()}
    after = describe(now.inputs, was.inputs, is_was=False)
    after |= {f"values.{name}": str(each) for name, each in now.values.items()}
    absent = "(absent)"
    return {
        f"{name}: {before.get(name, absent)} -> {after.get(name, absent)}"
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name)
    }


def expected_causes(
    before: Definitions, after: Definitions, changed: set[str], name: str, waits: set[tuple[str, str]]
) -> set[tuple[str, str]]:
    """The changes in the step, and in what it reads by the same name and of another version, in turn. `waits`: those
    that are said of inputs that some fields wait for."""
    found: set[tuple[str, str]] = set()
    waiting, seen = [name], set()
    while waiting:
        here = waiting.pop()
        if here in seen:
            continue
        seen.add(here)
        own = {(here, change) for change in own_changes(before[here], after[here])} | (waits & {(here, WAITS)})
        read_before = {each.name for each in before[here].inputs.values()}
        above = {each.name for each in after[here].inputs.values()} & read_before & changed
        found |= own or ({(here, ORDER)} if not above else set())
        waiting.extend(above)
    return found


def waits_may_have_changed(was: Definition, now: Definition) -> bool:
    return any(
        name in now.inputs and now.inputs[name].name == each.name and now.inputs[name].waits != each.waits
        for name, each in was.inputs.items()
    )


def said(item: Any) -> set[tuple[str, str]]:
    return {
        (cause.step, field if (field := cause.change.field) in (ORDER, WAITS) else cause.change.describe())
        for cause in item.why.causes
    }


def check(store: Store, seed: int) -> int:
    """Compare the reasons of one random edit; return how many were compared."""
    draw = random.Random(seed)
    before = random_definitions(draw, draw.randint(2, 7))
    after = edited(draw, before)
    was, now = graph_of(before), graph_of(after)
    hashes = {node.name: node.version.hash for node in was}
    changed = {node.name for node in now if node.version.hash != hashes[node.name]}
    publish(store, was)
    compared = 0
    for item in prepare_plan(now, store, list(now)):
        if item.kind is Kind.CHANGED:
            name = item.node.name
            assert item.reason, (seed, name)
            waits = {each for each in said(item) if each[1] == WAITS}
            assert all(waits_may_have_changed(before[step], after[step]) for step, _ in waits)
            assert said(item) == expected_causes(before, after, changed, name, waits), (seed, name, item.reason)
            compared += 1
    assert compared == len(changed)
    return compared


@pytest.mark.parametrize("seed", [pytest.param(0, id="few"), pytest.param(1000, id="many", marks=pytest.mark.long)])
def test_the_reason_of_each_step_is_what_was_edited(tmp_path: Any, seed: int) -> None:
    cases = range(seed, seed + (CASES if not seed else 8 * CASES))
    compared = sum(check(Store(str(tmp_path / str(case))), case) for case in cases)
    assert compared > len(cases)


def pairs() -> list[tuple[Node, Node]]:
    found = []
    for seed in range(400):
        draw = random.Random(seed)
        before = random_definitions(draw, draw.randint(2, 7))
        earlier = {node.name: node for node in graph_of(before)}
        later = graph_of(edited(draw, before))
        found += [(earlier[node.name], node) for node in later if node.version.hash != earlier[node.name].version.hash]
    return found


def test_without_records_two_versions_that_differ_have_a_difference_between_fields_that_are_there() -> None:
    for was, now in pairs():
        one, other = was.version.as_dict(), now.version.as_dict()
        found = differences(one, other)
        assert found.fields or found.inputs
        known = {*one["config"], *other["config"], ORDER, WAITS}
        assert {each.field for each in found.fields} <= known
