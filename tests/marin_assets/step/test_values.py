from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from marin_assets.step.step import Step
from marin_assets.step.values import (
    THIS_OUTPUT_PATH,
    ConfigError,
    InputName,
    MirroredValue,
    OutputName,
    VersionedValue,
    ensure_versioned,
    map_leaves,
    mirrored,
    output_path_of,
    this_output_path,
    unwrap_versioned_value,
    versioned,
)


@dataclass(frozen=True)
class Config:
    x: Any = None
    output_path: str = THIS_OUTPUT_PATH


class Pair(NamedTuple):
    left: Any
    right: Any


def do_nothing(config: Any) -> None:
    """Never run."""


DATA = Step(name="raw/data", fn=do_nothing, config=Config())


def test_versioned_wraps_a_value_once() -> None:
    assert versioned(50) == VersionedValue(50)
    with pytest.raises(ConfigError, match="is versioned already"):
        versioned(versioned(50))


@pytest.mark.parametrize("path", [DATA, output_path_of(DATA), THIS_OUTPUT_PATH, mirrored("raw/x")], ids=repr)
def test_versioned_refuses_a_path(path: Any) -> None:
    with pytest.raises(ConfigError, match="wraps a path, which enters the version by itself"):
        versioned(path)


@pytest.mark.parametrize(
    "value", [DATA, output_path_of(DATA), THIS_OUTPUT_PATH, mirrored("raw/x"), versioned(5)], ids=repr
)
def test_no_text_is_made_of_what_is_not_known_yet(value: Any) -> None:
    for lost in (lambda: f"{value}/x", lambda: f"{value:>9}", lambda: "{}/x".format(value)):  # noqa: UP032
        with pytest.raises(ConfigError) as caught:
            lost()
        assert str(caught.value).startswith(f"{value!r} is formatted into a text, where it would be lost")
    assert f"{value!r}" == repr(value) == str(value), "print() shows it"


def test_ensure_versioned_leaves_a_versioned_value_as_it_is() -> None:
    assert ensure_versioned(versioned(1)) == ensure_versioned(1) == VersionedValue(1)


def test_paths_below_a_step_are_joined_as_marin_joins_them() -> None:
    assert (DATA / "a" / "b").name == "a/b"
    assert (DATA / "a/" / "b").name == "a/b"
    assert output_path_of(DATA, "a").cd("b").name == "a/b"
    assert output_path_of(output_path_of(DATA, "a"), "b").name == "a/b"
    with pytest.raises(ConfigError, match="has the path '/absolute', expected a path below its folder"):
        (DATA / "a").cd("/absolute")


def test_output_path_of_wants_a_step() -> None:
    with pytest.raises(ConfigError, match="needs a Step"):
        output_path_of("raw/data")  # type: ignore[arg-type]


def test_output_path_of_a_hardcoded_path_is_a_place_below_it() -> None:
    assert output_path_of(InputName.hardcoded("raw/x")).name == "raw/x"
    assert output_path_of(InputName.hardcoded("raw/x"), "y").name == "raw/x/y"


def test_nonblocking_keeps_step_and_place() -> None:
    path = output_path_of(DATA, "checkpoints").nonblocking()
    assert (path.step, path.name, path.block_on_step) == (DATA, "checkpoints", False)
    assert DATA.nonblocking().block_on_step is False


def test_this_output_path_may_have_a_place_below() -> None:
    assert this_output_path("logs") == OutputName("logs")
    assert this_output_path() == THIS_OUTPUT_PATH


def test_mirrored_wraps_a_path_once_with_a_budget_above_zero() -> None:
    assert mirrored("raw/x", 3) == MirroredValue("raw/x", 3)
    with pytest.raises(ConfigError, match="is mirrored already"):
        mirrored(mirrored("raw/x"))
    for budget in (0, -1, "10", True, None):
        with pytest.raises(ConfigError, match="expected a number of GB above 0"):
            mirrored("raw/x", budget)  # type: ignore[arg-type]


def test_unwrap_reaches_into_every_container() -> None:
    wrapped = [versioned(1), (versioned([2]),), {"a": mirrored(versioned("p"))}, Pair(versioned(3), 4)]
    assert unwrap_versioned_value(Config(wrapped, "out")) == Config([1, ([2],), {"a": "p"}, Pair(3, 4)], "out")


@pytest.mark.parametrize("path", [DATA, output_path_of(DATA), THIS_OUTPUT_PATH], ids=repr)
def test_unwrap_refuses_a_path_that_is_not_known_yet(path: Any) -> None:
    with pytest.raises(ConfigError, match="known only when its step is placed"):
        unwrap_versioned_value(Config(path, "out"))


def test_map_leaves_leaves_the_original_as_it_is() -> None:
    original = Config({"a": [1, 2]}, "out")
    changed = map_leaves(original, lambda leaf: leaf * 2 if isinstance(leaf, int) else leaf)
    assert (original.x, changed.x) == ({"a": [1, 2]}, {"a": [2, 4]})
