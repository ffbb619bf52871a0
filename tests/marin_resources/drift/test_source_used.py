"""What a function uses of its modules: a change of it is seen, a change beside it is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from marin_resources.drift.drift import find_drift
from marin_resources.drift.source_digest import read_source, source_now
from marin_resources.drift.source_modules import Module
from marin_resources.types.record import Record

MAIN = '''
"""An experiment."""
import json
import helper
from dataclasses import dataclass
from functools import cache
from helper import double, TABLE as table
from marin_assets import Step, executor_main

FACTOR = 2
RATES = {"a": 1}
RATES["b"] = 3
OTHER = 5
unrelated = [1]

@dataclass(frozen=True)
class Config:
    n: int = FACTOR

class Base:
    """A base."""
    def run(self): return OTHER_OF_BASE

OTHER_OF_BASE = 7

class Used(Base):
    pass

def work(config: "Config"):
    # multiply
    scale = [x * FACTOR for x in table]
    unrelated = json.dumps(RATES)
    return helper.triple(double(scale)), Used().run(), inner(), unrelated

@cache
def inner():
    import late
    return late.value

def other(config):
    return OTHER + helper.unused()

steps = []
a = Step(name="a", fn=work, config=Config(), expect={"x": 1})
steps.append(Step(name="b", fn=other, config=Config()))
for n in range(3):
    steps.append(Step(name=f"c{n}", fn=other, config=Config(n=n)))

if __name__ == "__main__":
    executor_main([a, *steps])
'''
HELPER = """
import basis
TABLE = [1, 2]
def double(x): return 2 * x
def triple(x): return basis.times(3, x)
def unused(): return basis.never()
"""
BASIS = "def times(n, x): return n * x\ndef never(): return 0\n"
FILES = {"main": MAIN, "helper": HELPER, "basis": BASIS, "late": "value = 1\nother = 2\n"}


def source(folder: Path, **files: str) -> dict[str, Any]:
    """The source of `work` in main.py, with these files in place of those above."""
    for name, text in {**FILES, **files}.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = read_source([f"{folder}/main.py:work"], counted)
    assert found is not None
    return found


def used(folder: Path, **files: str) -> dict[str, str]:
    return source(folder, **files)["used"]


def counted(module: Module) -> bool:
    return not module.name.startswith("marin")


def drift(recorded: dict[str, Any], now: dict[str, Any]) -> list[str]:
    record = Record.from_dict({"name": "toy/a", "source_digest": recorded})
    return [item.sentence() for item in find_drift(record, Record.from_dict({"source_digest": now}), {})]


def edited(name: str, before: str, after: str) -> dict[str, str]:
    assert before in FILES[name]
    return {name: FILES[name].replace(before, after)}


@pytest.mark.parametrize(
    "edit",
    [
        edited("main", ', expect={"x": 1}', ""),
        edited("main", 'name="b"', 'name="bb"'),
        edited("main", "range(3)", "range(4)"),
        edited("main", "OTHER = 5", "OTHER = 6"),
        edited("main", "    return OTHER + helper.unused()", "    return 0"),
        edited("main", "executor_main([a, *steps])", "executor_main([a])"),
        edited("main", "    # multiply\n", "\n"),
        edited("main", '"""An experiment."""', '"""Another text."""'),
        edited("main", '    """A base."""\n', ""),
        edited("main", "unrelated = [1]", "unrelated = [2]"),
        edited("main", "import json\n", "import json, re\nimport os as system\n"),
        edited("main", "import double, TABLE as table", "import double, unused as u, TABLE as table"),
        edited("main", "\nOTHER = 5", "\ndef new(): return table\n\nOTHER = 5"),
        edited("helper", "return basis.never()", "return 1"),
        edited("basis", "return 0", "return 1"),
        edited("late", "other = 2", "other = 3"),
        {"main": MAIN + "\nexecutor_main([a])\n"},
        {"late": "import re\nvalue = 1\nother = 2\nWORD = re.compile('a')\n"},
    ],
)
def test_a_change_beside_what_the_function_uses_is_quiet(tmp_path: Path, edit: dict[str, str]) -> None:
    assert used(tmp_path, **edit) == used(tmp_path)


@pytest.mark.parametrize(
    ("module", "edit"),
    [
        ("main", edited("main", "FACTOR = 2", "FACTOR = 3")),
        ("main", edited("main", 'RATES["b"] = 3', 'RATES["b"] = 4')),
        ("main", edited("main", "import json\n", "import simplejson as json\n")),
        ("main", edited("main", "OTHER_OF_BASE = 7", "OTHER_OF_BASE = 8")),
        ("main", edited("main", "n: int = FACTOR", "n: int = FACTOR + 1")),
        ("main", edited("main", "@cache\n", "")),
        ("main", edited("main", "from helper import double, ", "from helper import unused as double, ")),
        ("helper", edited("helper", "return 2 * x", "return x + x")),
        ("helper", edited("helper", "TABLE = [1, 2]", "TABLE = [1]")),
        ("basis", edited("basis", "return n * x", "return x * n")),
        ("late", edited("late", "value = 1", "value = 2")),
    ],
)
def test_a_change_of_what_the_function_uses_is_seen_in_its_module(
    tmp_path: Path, module: str, edit: dict[str, str]
) -> None:
    before = used(tmp_path)
    after = used(tmp_path, **edit)
    assert {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)} >= {module}


EFFECTS = [
    # what an import executes
    ("import random\nrandom.seed({})\ndef work(c): return 1\n", {}),
    ("import os\nos.environ['A'] = '{}'\ndef work(c): return 1\n", {}),
    ("import json\njson.dumps = lambda x: {}\ndef work(c): return 1\n", {}),
    ("import numpy\nbefore = numpy.seterr({})\ndef work(c): return 1\n", {}),
    ("import patch\ndef work(c): return 1\n", {"patch": "import json\njson.loads = {}\n"}),
    ("import patch\ndef work(c): return 1\n", {"patch": "def apply(): return {}\napply()\n"}),
    ("R = []\nclass T:\n    def add(s, x): R.append(x)\nT().add({})\ndef work(c): return R\n", {}),
    # a function that is found by its registration
    ("R = {{}}\ndef reg(f): R[f.__name__] = f\n@reg\ndef a(): return {}\ndef work(c): return R[c]()\n", {}),
    (
        "from table import R\nimport plugin\ndef work(c): return R[c]()\n",
        {"table": "R = {{}}\ndef reg(f): R[1] = f\n", "plugin": "import table\n@table.reg\ndef a(): return {}\n"},
    ),
    ("class B:\n    def __init_subclass__(c): pass\nclass A(B):\n    x = {}\ndef work(c): return B\n", {}),
    (
        "from base import B\nclass A(B):\n    x = {}\ndef work(c): return B\n",
        {"base": "class B:\n    def __init_subclass__(c): pass\n"},
    ),
    ("class B: pass\nclass A(B):\n    x = {}\ndef work(c): return B.__subclasses__()\n", {}),
    ("import enum\nclass A(metaclass=M):\n    x = {}\ndef work(c): return 1\n", {}),
    ("R = []\nclass A:\n    R.append({})\ndef work(c): return R\n", {}),
    # names that are computed
    ("def a(): return {}\ndef work(c): return globals()[c]()\n", {}),
    ("import sys\ndef a(): return {}\ndef work(c): return sys.modules[__name__]\n", {}),
    ("import m\ndef work(c): return getattr(m, c)()\n", {"m": "def a(): return {}\n"}),
    ("import m\ndef work(c): return vars(m)[c]()\n", {"m": "def a(): return {}\n"}),
    ("def a(): return {}\ndef work(c): return eval(c)\n", {}),
    ("from m import *\ndef work(c): return a()\n", {"m": "def a(): return {}\n"}),
    ("import m\ndef work(c): return m.a()\n", {"m": "def __getattr__(n): return {}\n"}),
    ("import m\ndef work(c): return m.a()\n", {"m": "from n import *\n", "n": "def a(): return {}\n"}),
    # scopes
    ("x = {}\ndef work(c): return [x for x in x]\n", {}),
    ("x = {}\ndef work(c):\n    [x for x in c]\n    return x\n", {}),
    ("x = {}\ndef work(c):\n    def f(x): return x\n    return f(x)\n", {}),
    ("x = {}\ndef work(c):\n    x2 = lambda y=x: y\n    return x2()\n", {}),
    ("x = 1\ndef s():\n    global x\n    x = {}\ns()\ndef work(c): return x\n", {}),
    ("x = {}\nclass A:\n    x = x\n    def f(self): return x\ndef work(c): return A().f()\n", {}),
    ("def work(c, f=lambda: D): return f()\nD = {}\n", {}),
    ("class C:\n    n: int = {}\ndef work(c: 'list[C]'): return load(work)\n", {}),
    ("class C:\n    n: int = {}\nclass D:\n    c: 'C'\ndef work(d: D): return load(D)\n", {}),
    # definitions in several places
    ("try:\n    from fast import f\nexcept ImportError:\n    def f(): return {}\ndef work(c): return f()\n", {}),
    ("x = 1\nx += {}\ndef work(c): return x\n", {}),
    ("x, (y, *z) = {}, (2, 3)\ndef work(c): return z\n", {}),
    ("for i in range({}):\n    last = i\ndef work(c): return last\n", {}),
    ("if (n := {}) > 1: pass\ndef work(c): return n\n", {}),
    ("with open('/dev/null') as f:\n    x = {}\ndef work(c): return x\n", {}),
    # imports
    ("import p.q\ndef work(c): return p.q.f()\n", {"p/q": "def f(): return {}\n"}),
    ("import p.q as r\ndef work(c): return r.f()\n", {"p/q": "def f(): return {}\n"}),
    ("from p import q\ndef work(c): return q.f()\n", {"p/q": "def f(): return {}\n"}),
    ("from p import q\ndef work(c): return q.f()\n", {"p/__init__": "", "p/q": "def f(): return {}\n"}),
    ("import p\ndef work(c): return p.f()\n", {"p/__init__": "from .q import f\n", "p/q": "def f(): return {}\n"}),
    ("def work(c):\n    from m import f as g\n    return g()\n", {"m": "def f(): return {}\n"}),
    ("def work(c):\n    import m\n    return m.f()\n", {"m": "def f(): return {}\n"}),
    ("import m\ndef work(c): return m.f.g.h()\n", {"m": "import n\nf = n\n", "n": "def g(): return {}\n"}),
    ("import m\ndef work(c): return c(m)\n", {"m": "def g(): return {}\n"}),
]


@pytest.mark.parametrize(("main", "others"), EFFECTS, ids=range(len(EFFECTS)))
def test_what_is_used_in_another_way_than_by_name_is_seen(tmp_path: Path, main: str, others: dict[str, str]) -> None:
    first, second = (
        used(tmp_path, main=main.format(n), **{name: text.format(n) for name, text in others.items()}) for n in (1, 2)
    )
    assert first != second


def test_another_imported_module_without_effects_is_quiet_and_one_with_effects_is_not(tmp_path: Path) -> None:
    main = "def work(c): return 1\n"
    before = used(tmp_path, main=main)
    assert used(tmp_path, main=f"import m\n{main}", m="def f(): return 1\nx = f\n") == before
    assert set(used(tmp_path, main=f"import m\n{main}", m="print(1)\n")) == {"main", "m"}


def test_a_module_that_does_not_parse_is_its_bytes(tmp_path: Path) -> None:
    main = "import m\ndef work(c): return m.f()\n"
    assert used(tmp_path, main=main, m="def f(:") != used(tmp_path, main=main, m="def g(:")


def test_a_long_chain_of_modules_is_followed(tmp_path: Path) -> None:
    chain = {f"m{n}": f"import m{n + 1}\ndef f(): return m{n + 1}.f()\n" for n in range(400)}
    main = "import m0\ndef work(c): return m0.f()\n"
    first = used(tmp_path, main=main, **chain, m400="def f(): return 1\n")
    second = used(tmp_path, main=main, **chain, m400="def f(): return 2\n")
    assert {name for name in first if first[name] != second[name]} == {"m400"}


def test_an_expect_taken_away_is_no_drift_and_an_edit_of_a_helper_names_its_module(tmp_path: Path) -> None:
    recorded = source(tmp_path)
    assert drift(recorded, source(tmp_path, **edited("main", ', expect={"x": 1}', ""))) == []
    assert drift(recorded, source(tmp_path, **edited("basis", "return n * x", "return x"))) == [
        "The source of 'basis' changed."
    ]


@pytest.mark.parametrize("format_of_record", [None, 0, 2])
def test_a_record_of_another_format_is_compared_by_module(tmp_path: Path, format_of_record: int | None) -> None:
    recorded = source(tmp_path)
    older = {key: value for key, value in recorded.items() if not key.startswith("used")}
    if format_of_record is not None:
        older |= {"used": {"main": "computed in another way"}, "used_format": format_of_record}
    assert source_now([f"{tmp_path}/main.py:work"], counted, older) is older
    (tmp_path / "helper.py").write_text(f"# a comment\n{HELPER}")
    now = source_now([f"{tmp_path}/main.py:work"], counted, older)
    assert now is not None
    assert drift(older, dict(now)) == []
    assert drift(older, source(tmp_path, **edited("main", ', expect={"x": 1}', ""))) == [
        "The source of 'main' changed."
    ]


def test_a_very_long_expression_is_its_whole_module(tmp_path: Path) -> None:
    long = "x = " + " + ".join(["1"] * 5000) + "\n"
    main = "def work(c): return {}\n"
    assert used(tmp_path, main=main.format(1) + long) != used(tmp_path, main=main.format(2) + long)


def test_many_steps_of_one_function_are_read_once(tmp_path: Path) -> None:
    assert source(tmp_path) is source(tmp_path)
