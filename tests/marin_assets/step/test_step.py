from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from marin_assets.step.step import Step
from marin_assets.step.values import THIS_OUTPUT_PATH, ConfigError, InputName, this_partition, versioned
from marin_resources.hardware.resources import cpu


@dataclass(frozen=True)
class Config:
    output_path: str = THIS_OUTPUT_PATH


@dataclass(frozen=True)
class Reading:
    source: Any = ""
    more: Any = None


def do_nothing(config: Any) -> None:
    """Never run."""


def step(**changes: Any) -> Step:
    return Step(**{"name": "raw/a", "fn": do_nothing, "config": Config(), **changes})


@pytest.mark.parametrize(
    "name", ["a", "raw/a=1,lr=3e-4", "tokenized/roneneldan/TinyStories", "x+y@v1.2", "übung/a:b", "a-b_c.d"]
)
def test_a_name_that_marin_uses_is_a_name(name: str) -> None:
    assert step(name=name).name == name


@pytest.mark.parametrize(
    "name",
    ["", "/a", "a/", "a//b", "..", "a/../b", "./a", ".hidden", "a/.marin", "a b", "a\nb", "a\tb", "a*", "a?", "a[1]",
     "a{b}", "a#b", "a%20b", 'a"b', "a\\b", "\x00", None, 3, b"raw/a"],
    ids=repr,
)  # fmt: skip
def test_a_bad_name_is_refused_in_one_sentence_that_quotes_it(name: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        step(name=name)
    assert f"A step has the name {name!r}" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"fn": "module:name"}, "Step 'raw/a' has fn='module:name', expected a function"),
        ({"fn": None}, "Step 'raw/a' has fn=None, expected a function"),
        ({"config": {"x": 1}}, "Step 'raw/a' has config={'x': 1}, expected an instance of a dataclass"),
        ({"config": Config}, "expected an instance of a dataclass"),
        ({"extras": "train"}, "Step 'raw/a' has extras='train', expected a tuple of texts, such as ('train',)"),
        ({"env": "HF_TOKEN"}, "Step 'raw/a' has env='HF_TOKEN', expected a tuple of texts, such as ('HF_TOKEN',)"),
        ({"resources": 4}, "Step 'raw/a' has resources=4, expected cpu(), gpu() or tpu()"),
    ],
)
def test_a_bad_part_is_refused_in_one_sentence_that_names_the_step(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        step(**changes)
    assert sentence in str(caught.value)


def test_making_a_step_calls_nothing() -> None:
    def explode(config: Any) -> None:
        raise AssertionError

    step(fn=explode)


def test_steps_are_compared_by_being_the_same_object() -> None:
    one, other = step(), step()
    assert one != other
    assert len({one, other, one}) == 2


def test_a_step_asks_for_one_cpu_by_default() -> None:
    assert step().resources == cpu(1)


def test_a_place_below_a_step_is_an_input_name() -> None:
    one = step()
    below = one / "sub"
    assert isinstance(below, InputName)
    assert (below.step, below.name) == (one, "sub")
    assert one.as_input_name().name is None
    assert repr(one) == "Step('raw/a')"


def test_with_output_path_changes_the_path_alone() -> None:
    one = step(description="d")
    moved = one.with_output_path("x/y")
    assert (moved.override_output_path, moved.name, moved.description, moved.config) == (
        "x/y",
        "raw/a",
        "d",
        one.config,
    )


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"config": Reading(source="https://ada:pa55word@host/x")}, "config.source"),
        ({"config": Reading(source=versioned("sftp://ada:pa55word@host/x"))}, "config.source"),
        ({"config": Reading(source=this_partition(form="https://ada:pa55word@host/{partition}"))}, "config.source"),
        ({"config": Reading(source="simplecache::https://:pa55word@host/x")}, "config.source"),
        ({"config": Reading(more={"a": ["", "postgresql://ada:pa55word@host/x"]})}, "config.more['a'][1]"),
        ({"packages": ("lxml", "a @ git+https://ada:pa55word@host/a.git")}, "packages[1]"),
    ],
)
def test_a_password_in_an_url_is_refused_without_showing_it(changes: dict[str, Any], place: str) -> None:
    with pytest.raises(ConfigError) as caught:
        step(**changes)
    assert f"Step 'raw/a' has a password in {place}, '" in str(caught.value)
    assert ":***@host" in str(caught.value)
    assert "pa55word" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "source",
    ["https://host/x", "https://host:8080/x@y", "hf://datasets/a/b@main:c", "ssh://git@host/x", "gs://a/b:c@d",
     "see https://ada:example@host for more", "https://host/?q=a:b@c", "/data/a:b@c"],
)  # fmt: skip
def test_what_looks_like_a_password_and_is_none_is_taken(source: str) -> None:
    assert step(config=Reading(source=source)).config.source == source
