"""What steps require, as it crosses into Dagster's definitions, and what they lack, as people read it."""

from __future__ import annotations

import json

from marin_resources.hardware.resources import cpu, gpu
from marin_resources.ray_tpu.requirements import MissingRequirement, Requirements, describe_missing, merge_missing


def test_requirements_are_the_same_after_json_and_nothing_is_said_of_what_is_not_required() -> None:
    for required in (
        Requirements(step="a"),
        Requirements(step="a", extras=("train",), env=("KEY",), packages=("lxml>=5",), resources=gpu("H100", 2)),
        Requirements(step="a", resources=cpu(8, memory_gib=4)),
    ):
        assert Requirements.from_dict("a", json.loads(json.dumps(required.to_dict()))) == required
    assert Requirements(step="a").to_dict() == {}
    assert Requirements(step="a").plain
    assert not Requirements(step="a", resources=cpu(2)).plain


def test_steps_that_lack_the_same_share_a_sentence() -> None:
    variable = MissingRequirement(verb="requires", what="the variable 'KEY', which is not set", remedy="Export it.")
    package = MissingRequirement(verb="needs", what="jax, which is not installed", remedy="Run: uv sync")
    assert describe_missing({"a": (variable,), "b": (package,), **dict.fromkeys("cdefg", (variable,))}) == [
        "Steps 'a', 'c', 'd' and 3 more require the variable 'KEY', which is not set. Export it.",
        "Step 'b' needs jax, which is not installed. Run: uv sync",
    ]
    assert describe_missing({"a": (variable,), "b": (variable,)})[0].startswith(
        "Steps 'a' and 'b' require the variable"
    )


def test_a_step_that_lacks_several_things_is_named_for_each_of_them() -> None:
    variable = MissingRequirement(verb="requires", what="the variable 'KEY', which is not set", remedy="Export it.")
    package = MissingRequirement(verb="needs", what="jax, which is not installed", remedy="Run: uv sync")
    missing_by_step = merge_missing({"a": (package,), "b": ()}, {"a": (variable, package), "c": (variable,)})
    assert missing_by_step == {"a": (package, variable), "c": (variable,)}
    assert describe_missing(missing_by_step) == [
        "Step 'a' needs jax, which is not installed. Run: uv sync",
        "Steps 'a' and 'c' require the variable 'KEY', which is not set. Export it.",
    ]
