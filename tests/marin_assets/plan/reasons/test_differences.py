"""In what two versions differ: the fields with both values, and the inputs that are of another version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from marin_assets.plan.reasons.differences import InputChange, differences
from marin_assets.plan.reasons.read_inputs import path_of
from marin_assets.step.graph import build_graph
from marin_assets.step.step import Step
from marin_assets.step.values import output_path_of, versioned


@dataclass(frozen=True, kw_only=True)
class Config:
    value: Any = None
    inputs: tuple[Any, ...] = ()


def work(config: Config) -> None:
    return None


def step(name: str, value: Any = 1, *inputs: Any) -> Step:
    return Step(name=name, fn=work, config=Config(value=versioned(value), inputs=inputs))


def version_of(last: Step) -> dict[str, Any]:
    return build_graph([last])[last].version.as_dict()


def described(was: Step, now: Step) -> list[str]:
    return [each.describe() for each in differences(version_of(was), version_of(now)).fields]


def changed_inputs(was: Step, now: Step) -> list[str]:
    return [each.name for each in differences(version_of(was), version_of(now)).inputs]


def test_a_field_is_shown_with_both_values() -> None:
    assert described(step("x", 0.003), step("x", 0.001)) == ["value: 0.003 -> 0.001"]
    assert described(step("x", "a"), step("x", None)) == ['value: "a" -> null']


def test_values_that_python_calls_equal_differ_as_their_versions_do() -> None:
    assert described(step("x", 1), step("x", 1.0)) == ["value: 1 -> 1.0"]
    assert described(step("x", 1), step("x", True)) == ["value: 1 -> true"]


def test_a_long_value_is_cut() -> None:
    [text] = described(step("x", "a" * 1000), step("x", "b"))
    assert len(text) < 100
    assert text.endswith('… -> "b"')


def test_an_input_of_another_version_is_no_field() -> None:
    was, now = step("x", 1, step("raw/a", 1)), step("x", 1, step("raw/a", 2))
    assert described(was, now) == []
    assert changed_inputs(was, now) == ["raw/a"]


def test_an_input_that_is_another_step_is_a_field() -> None:
    was, now = step("x", 1, step("raw/a")), step("x", 1, step("raw/b"))
    assert described(was, now) == ["inputs.[0]: 'raw/a' -> 'raw/b'"]
    assert changed_inputs(was, now) == []


def test_an_input_that_is_new_is_a_field_and_moves_no_other() -> None:
    a, b = step("raw/a"), step("raw/b")
    assert described(step("x", 1, a), step("x", 1, a, b)) == ["inputs.[1]: (absent) -> 'raw/b'"]
    assert described(step("x", 1, a, b), step("x", 1, a)) == ["inputs.[1]: 'raw/b' -> (absent)"]


def test_a_path_below_an_input_is_part_of_the_field() -> None:
    a = step("raw/a")
    assert described(step("x", 1, output_path_of(a, "en")), step("x", 1, output_path_of(a, "de"))) == [
        "inputs.[0]: 'raw/a'/en -> 'raw/a'/de"
    ]


def test_non_blocking_inputs_are_compared_by_name() -> None:
    def x(value: int, name: str) -> Step:
        return step("x", 1, step("raw/a"), output_path_of(step(name, value)).nonblocking())

    assert changed_inputs(x(1, "raw/b"), x(2, "raw/b")) == ["raw/b"]
    assert described(x(1, "raw/b"), x(1, "raw/c")) == [
        "inputs.[1]: 'raw/b' (not waited for) -> 'raw/c' (not waited for)"
    ]


def test_inputs_far_above_the_raw_data_are_compared_by_their_paths() -> None:
    def chain(value: int) -> Step:
        last = step("s/0", value)
        for i in range(1, 8):
            last = step(f"s/{i}", 1, last)
        return last

    [change] = differences(version_of(chain(1)), version_of(chain(2))).inputs
    assert isinstance(change, InputChange)
    assert isinstance(change.was, str)
    assert change.name == "s/6"
    above = chain(1).config.inputs[0]
    assert path_of(change.was) == build_graph([above])[above].version.path
