from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
import subprocess
import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marin_assets.step.graph import build_graph
from marin_assets.step.step import Step
from marin_assets.step.values import (
    THIS_OUTPUT_PATH,
    ConfigError,
    InputName,
    VersionedValue,
    mirrored,
    output_path_of,
    versioned,
)
from marin_assets.step.version import MAX_INLINE_DEPTH, Version


@dataclass(frozen=True)
class Config:
    x: Any = None
    y: Any = None
    z: Any = None
    output_path: str = THIS_OUTPUT_PATH


class Color(enum.Enum):
    RED = "red"


class Size(enum.IntEnum):
    BIG = 3


class Word(enum.StrEnum):
    HI = "hi"


@dataclass(frozen=True)
class Model:
    layers: int
    ratio: float
    color: Color = Color.RED


def do_nothing(config: Any) -> None:
    """Never run."""


def step(name: str = "raw/a", **fields: Any) -> Step:
    return Step(name=name, fn=do_nothing, config=Config(**fields))


def version_of(given: Step) -> Version:
    return build_graph([given])[given].version


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
subs = st.none() | st.sampled_from(["train", "a/b"])


@st.composite
def dags(draw: st.DrawFn) -> list[Step]:
    """Steps of which each reads some before it, nested in dataclasses, lists, tuples and dicts."""
    steps: list[Step] = []

    def path(draw_: st.DrawFn) -> Any:
        above = draw_(st.sampled_from(steps))
        chosen = draw_(st.sampled_from([above, output_path_of(above, draw_(subs))]))
        if isinstance(chosen, InputName) and draw_(st.booleans()):
            chosen = chosen.nonblocking()
        return mirrored(chosen) if draw_(st.integers(0, 5)) == 0 else chosen

    def value(depth: int) -> Any:
        kind = draw(st.sampled_from(["versioned", "plain", "path", "hard", "list", "tuple", "dict", "dataclass"]))
        if kind == "path" and steps:
            return path(draw)
        if kind == "hard":
            names = st.text(min_size=1, max_size=4).filter(lambda name: ".." not in name)  # which is refused
            return InputName.hardcoded(draw(names))
        if kind in ("list", "tuple", "dict", "dataclass") and depth < 2:
            items = [value(depth + 1) for _ in range(draw(st.integers(0, 2)))]
            names = draw(st.lists(st.text(max_size=3), min_size=len(items), max_size=len(items), unique=True))
            padded = [*items, None, None][:2]
            shapes = {"list": items, "tuple": tuple(items), "dict": dict(zip(names, items, strict=True))}
            return shapes.get(kind, Config(x=padded[0], y=padded[1]))
        return versioned(draw(json_values)) if kind == "versioned" else draw(json_values)

    for number in range(draw(st.integers(1, 9))):
        above = steps[-1] if steps and draw(st.booleans()) else None
        steps.append(step(f"s/{number}", x=above, y=value(0), z=value(0)))
    return steps


def naive_versions(steps: list[Step]) -> dict[Step, dict[str, Any]]:
    """The nested dict, built as the algorithm is told, with no regard for its size. For steps given inputs first."""
    versions: dict[Step, dict[str, Any]] = {}
    depths: dict[Step, int] = {}
    for one in steps:
        fields: dict[str, Any] = {}
        deps: list[Step] = []
        pseudo: list[Step] = []

        def walk(value: Any, place: str, fields: dict = fields, deps: list = deps, pseudo: list = pseudo) -> None:
            if isinstance(value, Step):
                value = InputName(value)
            if type(value).__name__ == "MirroredValue":
                walk(value.value, place)
            elif isinstance(value, VersionedValue):
                fields[place] = value.value
            elif isinstance(value, InputName) and value.step is None:
                fields[place] = value.name
            elif isinstance(value, InputName):
                fields[place] = f"DEP[{len(deps) + len(pseudo)}]" + (f"/{value.name}" if value.name else "")
                (deps if value.block_on_step else pseudo).append(value.step)
            elif isinstance(value, Config):
                for field in dataclasses.fields(value):
                    walk(getattr(value, field.name), f"{place}.{field.name}" if place else field.name)
            elif isinstance(value, list | tuple):
                for i, item in enumerate(value):
                    walk(item, f"{place}.[{i}]" if place else f"[{i}]")
            elif isinstance(value, dict):
                for key, item in value.items():
                    walk(item, f"{place}.{key}" if place else key)

        def inline(dep: Step) -> Any:
            if depths[dep] <= MAX_INLINE_DEPTH:
                return versions[dep]
            return f"{dep.name}-{hashlib.md5(json.dumps(versions[dep], sort_keys=True).encode()).hexdigest()[:6]}"

        walk(one.config, "")
        versions[one] = {"name": one.name, "config": fields, "dependencies": [inline(dep) for dep in deps]}
        if pseudo:
            versions[one]["pseudo_dependencies"] = [inline(dep) for dep in pseudo]
        depths[one] = 1 + max((depths[dep] for dep in deps), default=-1)
    return versions


@given(dags())
@settings(max_examples=150, deadline=None)
def test_the_text_of_a_version_is_json_of_the_nested_dict(steps: list[Step]) -> None:
    graph = build_graph(steps)
    for one, version in naive_versions(steps).items():
        text = json.dumps(version, sort_keys=True)
        assert graph[one].version.text == text
        assert graph[one].version.hash == hashlib.md5(text.encode()).hexdigest()[:6]
        assert graph[one].version.as_dict() == json.loads(text)


@given(json_values)
@settings(max_examples=100, deadline=None)
def test_a_versioned_value_enters_as_it_is(value: Any) -> None:
    assert version_of(step(x=versioned(value))).as_dict()["config"] == {"x": json.loads(json.dumps(value))}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Color.RED, "red"),
        (Size.BIG, 3),
        (Word.HI, "hi"),
        (Path("a/b"), "a/b"),
        (timedelta(days=1, seconds=2, microseconds=3), {"days": 1, "seconds": 2, "microseconds": 3}),
        (Model(2, 0.5), {"layers": 2, "ratio": 0.5, "color": "red"}),
        ((1, (2, Color.RED)), [1, [2, "red"]]),
        ({"models": [Model(1, 1e-7)]}, {"models": [{"layers": 1, "ratio": 1e-7, "color": "red"}]}),
        ({1: "a", 2: "b"}, {"1": "a", "2": "b"}),
    ],
)
def test_a_value_that_json_lacks_enters_as_marins_encoder_writes_it(value: Any, expected: Any) -> None:
    assert version_of(step(x=versioned(value))).as_dict()["config"] == {"x": expected}


class Opaque:
    pass


@pytest.mark.parametrize(
    "value",
    [
        lambda x: x,
        object(),
        Opaque(),
        Opaque,
        {1, 2},
        frozenset("a"),
        b"bytes",
        1j,
        float("nan"),
        float("-inf"),
        [1, {"deep": (object(),)}],
        Model(1, float("nan")),
        {(1, 2): "a"},
        {1: "a", "b": "c"},
    ],
)
def test_a_value_without_stable_json_is_refused_by_step_and_field(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"'raw/odd'.*config\.y"):
        version_of(step("raw/odd", y=versioned(value)))


def test_numpys_own_scalars_are_refused() -> None:
    numpy = pytest.importorskip("numpy")
    for value in (numpy.float32(1.5), numpy.int64(3), numpy.bool_(True), numpy.array([1])):
        with pytest.raises(ConfigError, match=r"config\.x\[0\] is .*no stable JSON"):
            version_of(step(x=versioned([value])))


def test_a_path_inside_a_versioned_list_is_refused() -> None:
    data = step("raw/data")
    for inner in (output_path_of(data), data, THIS_OUTPUT_PATH, mirrored("raw/x"), versioned(1)):
        with pytest.raises(ConfigError, match=r"config\.x\[0\] has .* inside versioned\(\)"):
            version_of(step(x=versioned([inner])))


def test_an_unversioned_field_never_enters() -> None:
    assert version_of(step(x=1, y=versioned(2))).hash == version_of(step(x="other", y=versioned(2))).hash


def test_what_else_a_step_has_never_enters() -> None:
    from marin_resources.hardware.resources import cpu

    plain = step(x=versioned(1))
    dressed = dataclasses.replace(
        plain, resources=cpu(7), description="d", extras=("train",), env=("A",), tags={"a": "b"}, resumable=True
    ).with_output_path("elsewhere")
    assert version_of(plain) == version_of(dressed)


def test_a_set_in_a_config_is_refused_as_it_has_no_order() -> None:
    with pytest.raises(ConfigError, match=r"'raw/a' config\.x is a set"):
        version_of(step(x={"a"}))


def test_a_key_that_is_no_text_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'raw/a' config\.x has the key 3"):
        version_of(step(x={3: versioned(1)}))


def test_a_step_used_twice_is_two_entries() -> None:
    data = step("raw/data")
    version = version_of(step("b", x=data, y=output_path_of(data, "sub"))).as_dict()
    assert version["config"] == {"x": "DEP[0]", "y": "DEP[1]/sub"}
    assert len(version["dependencies"]) == 2


def test_pseudo_dependencies_do_not_make_a_version_deeper() -> None:
    chain = [step("p/0")]
    for number in range(1, 8):
        chain.append(step(f"p/{number}", x=chain[-1].nonblocking()))
    last = version_of(chain[-1])
    assert last.depth == 0
    assert isinstance(last.as_dict()["pseudo_dependencies"][0], dict)


def test_a_version_is_the_same_under_another_hash_seed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from dataclasses import dataclass\n"
        "from marin_assets import Step, versioned\n"
        "from marin_assets.step.graph import build_graph\n"
        "@dataclass(frozen=True)\n"
        "class C:\n    x: dict\n"
        "def f(c): pass\n"
        "s = Step(name='raw/a', fn=f, config=C(versioned({k: len(k) for k in {'bb', 'a', 'ccc', 'dddd'}})))\n"
        "print(build_graph([s])[s].version.text)\n"
    )
    texts = set()
    for seed in ("0", "1", "2"):
        done = subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        )
        texts.add(done.stdout)
    assert len(texts) == 1


@pytest.mark.parametrize("levels", [101, 900, 100_000])
def test_a_config_that_no_worker_could_receive_is_refused_in_one_sentence(levels: int) -> None:
    deep: Any = 1
    for _ in range(levels):
        deep = [deep]
    for value in (deep, versioned(deep), {"a": deep}):
        with pytest.raises(ConfigError, match=r"^Step 'raw/a' config is nested more than 100 levels deep\. Write deep"):
            build_graph([step("raw/a", x=value)])
