from __future__ import annotations

import enum
import json
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marin_resources.wire.config_json import MAX_DEPTH, EncodeError, decode, encode, plain, references_in


class Color(enum.Enum):
    RED = "red"
    BLUE = (1, 2)


class Word(enum.StrEnum):
    HI = "hi"


@dataclass(frozen=True)
class Inner:
    x: Any = None
    y: Any = None


@dataclass(frozen=True, kw_only=True)
class Outer:
    inner: Any
    doubled: Any = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "doubled", [self.inner, self.inner])


class Pair(NamedTuple):
    left: int
    right: int


leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(Color)
    | st.sampled_from(Word)
    | st.timedeltas()
    | st.lists(st.text("abc.", min_size=1), min_size=1, max_size=3).map(lambda parts: Path(*parts))
)
keys = st.text().filter(lambda key: not key.startswith("$"))
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(keys, inner, max_size=3)
        | st.builds(Inner, inner, inner)
        | st.builds(Outer, inner=inner)
    ),
    max_leaves=10,
)


@given(values)
@settings(max_examples=300, deadline=None)
def test_a_config_comes_back_through_json_as_it_was(value: Any) -> None:
    read = decode(json.loads(json.dumps(encode(value), allow_nan=False)))
    assert read == value
    assert repr(read) == repr(value)


@given(values)
@settings(max_examples=100, deadline=None)
def test_what_people_read_has_no_tags(value: Any) -> None:
    assert not any(f'"{tag}"' in json.dumps(plain(encode(value))) for tag in ("$dataclass", "$tuple", "$timedelta"))


def test_a_config_is_sent_as_it_can_be_read() -> None:
    config = Inner(x=(1, Color.BLUE), y={"p": Path("a/b"), "t": timedelta(days=1, seconds=2)})
    assert encode(config) == {
        "$dataclass": f"{__name__}:Inner",
        "x": {"$tuple": [1, {"$enum": f"{__name__}:Color", "name": "BLUE"}]},
        "y": {"p": {"$path": "a/b"}, "t": {"$timedelta": [1, 2, 0]}},
    }
    assert plain(encode(config)) == {"x": [1, "BLUE"], "y": {"p": "a/b", "t": [1, 2, 0]}}
    assert references_in(encode(config)) == {f"{__name__}:Inner", f"{__name__}:Color"}


def test_a_path_comes_back_as_one_that_can_be_opened() -> None:
    assert decode(encode(Path(__file__))).exists()


class Opaque:
    pass


@dataclass
class Local:
    pass


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (Inner(x=[1, object()]), r"config\.x\[1\] is <object .* of type object, which cannot be sent as JSON"),
        (Inner(y={"a": {1}}), r"config\.y\['a'\] is \{1\} of type set"),
        (Inner(x=float("nan")), r"config\.x is nan, which JSON cannot represent"),
        (Inner(x=(float("inf"),)), r"config\.x\[0\] is inf"),
        (Inner(x={1: "a"}), r"config\.x has the key 1, expected a text that does not begin with '\$'"),
        (Inner(x={"$path": "a"}), r"config\.x has the key '\$path'"),
        (Inner(x=b"a"), r"config\.x is b'a' of type bytes"),
        (Inner(x=Opaque), r"config\.x is .*Opaque.* of type type"),
        (Inner(x=len), r"config\.x is <built-in function len>"),
        (Inner(x=Pair(1, 2)), r"config\.x is Pair\(left=1, right=2\) of type Pair"),
    ],
)
def test_what_has_no_json_form_is_refused_by_field_and_value(value: Any, sentence: str) -> None:
    with pytest.raises(EncodeError, match=sentence):
        encode(value)


def test_a_class_that_a_worker_could_not_import_is_refused() -> None:
    @dataclass
    class Hidden:
        x: int

    with pytest.raises(ValueError, match="defined inside a function, so a worker cannot import it"):
        encode(Hidden(1))


@pytest.mark.parametrize("tag", ["$dataclass", "$enum"])
@pytest.mark.parametrize("reference", ["os:system", "subprocess:Popen", f"{__name__}:Opaque"])
def test_json_calls_nothing_but_dataclasses_and_enums(tag: str, reference: str) -> None:
    with pytest.raises(EncodeError, match="is not a"):
        decode({tag: reference, "name": "touch /tmp/never"})


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def test_a_value_of_100_levels_is_sent_and_a_deeper_one_is_refused_in_one_sentence() -> None:
    assert plain(decode(encode(nested(MAX_DEPTH)))) == nested(MAX_DEPTH)
    for levels in (MAX_DEPTH + 1, 900, 100_000):
        with pytest.raises(
            EncodeError, match=r"^result is nested more than 100 levels deep\. Write deep values to a file"
        ):
            encode(nested(levels), "result")
