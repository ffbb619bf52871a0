from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from marin_assets.step.graph import build_graph
from marin_assets.step.resolve import check_config, mirror_budget_gb, resolve
from marin_assets.step.step import Step
from marin_assets.step.values import (
    THIS_OUTPUT_PATH,
    InputName,
    mirrored,
    output_path_of,
    this_output_path,
    versioned,
)
from marin_resources.storage.output.store import Store
from marin_resources.types.output import below
from marin_resources.wire.config_json import EncodeError


@dataclass(frozen=True)
class Config:
    x: Any = None
    output_path: str = THIS_OUTPUT_PATH


class Pair(NamedTuple):
    left: Any
    right: Any


def do_nothing(config: Any) -> None:
    """Never run."""


def resolved(step: Step, prefix: str = "/prefix") -> Config:
    graph, store = build_graph([step]), Store(prefix)
    return resolve(graph[step], graph, store.locate, prefix)


DATA = Step(name="raw/data", fn=do_nothing, config=Config())
DATA_PATH = f"/prefix/{build_graph([DATA])[DATA].version.path}"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (DATA, DATA_PATH),
        (output_path_of(DATA), DATA_PATH),
        (output_path_of(DATA, "train"), f"{DATA_PATH}/train"),
        (DATA / "a" / "b", f"{DATA_PATH}/a/b"),
        (DATA.nonblocking(), DATA_PATH),
        (versioned(50), 50),
        (versioned([1, (2,)]), [1, (2,)]),
        (InputName.hardcoded("raw/old"), "/prefix/raw/old"),
        (InputName.hardcoded("gs://bucket/old"), "gs://bucket/old"),
        (InputName.hardcoded("/old"), "/old"),
        (mirrored("raw/x"), "mirror://raw/x"),
        (mirrored(versioned("raw/x")), "mirror://raw/x"),
        (mirrored("mirror://raw/x"), "mirror://raw/x"),
        (mirrored(output_path_of(DATA, "train")), DATA_PATH.replace("/prefix/", "mirror://") + "/train"),
        (mirrored("/old"), "/old"),
        (mirrored("gs://bucket/old"), "gs://bucket/old"),
        ("plain", "plain"),
        (None, None),
        ([Pair(DATA, 1), {"k": (versioned(2),)}], [Pair(DATA_PATH, 1), {"k": (2,)}]),
    ],
)
def test_a_placeholder_becomes_what_it_stands_for(value: Any, expected: Any) -> None:
    assert resolved(Step(name="b", fn=do_nothing, config=Config(value))).x == expected


def test_a_step_gets_its_own_path() -> None:
    step = Step(name="b", fn=do_nothing, config=Config(this_output_path("logs")))
    config = resolved(step)
    assert re.fullmatch(r"/prefix/b-[0-9a-f]{6}", config.output_path)
    assert config.x == f"{config.output_path}/logs"


def test_an_overridden_path_is_given_to_those_that_read_it_and_changes_no_version() -> None:
    moved = DATA.with_output_path("somewhere/else")
    plain, other = (Step(name="b", fn=do_nothing, config=Config(data)) for data in (DATA, moved))
    assert resolved(other).x == "/prefix/somewhere/else"
    assert resolved(other).output_path == resolved(plain).output_path


def test_a_prefix_may_be_a_bucket() -> None:
    step = Step(name="b", fn=do_nothing, config=Config(DATA))
    assert resolved(step, "gs://bucket/marin").x == DATA_PATH.replace("/prefix", "gs://bucket/marin")


def test_an_equal_step_met_second_resolves_like_the_first() -> None:
    twin = Step(name="raw/data", fn=do_nothing, config=Config())
    assert resolved(Step(name="b", fn=do_nothing, config=Config([DATA, twin]))).x == [DATA_PATH, DATA_PATH]


def test_below_joins_with_one_slash() -> None:
    assert below("/a/", "b") == "/a/b"
    assert below("/a", None) == below("/a", "") == "/a"


def test_the_mirror_budget_of_a_step_is_the_largest_in_its_config() -> None:
    paths = [mirrored("raw/x", budget_gb=3), {"deep": mirrored(versioned("raw/y"), budget_gb=2200)}]
    assert mirror_budget_gb(Step(name="b", fn=do_nothing, config=Config(paths))) == 2200
    assert mirror_budget_gb(Step(name="b", fn=do_nothing, config=Config("raw/x"))) is None


def test_a_config_that_cannot_be_sent_is_refused_by_step_and_field() -> None:
    step = Step(name="b", fn=do_nothing, config=Config({"f": object()}))
    with pytest.raises(EncodeError, match=r"Step 'b' config\.x\['f'\] is <object"):
        check_config(build_graph([step])[step])


def test_a_config_with_placeholders_can_be_sent() -> None:
    step = Step(name="b", fn=do_nothing, config=Config([DATA, versioned(1), mirrored("x"), this_output_path()]))
    check_config(build_graph([step])[step])
