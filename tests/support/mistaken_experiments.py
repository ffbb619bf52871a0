"""Mistakes in a file of the folder of experiments: name -> the file's text, the number of the line, parts of the
sentence."""

from __future__ import annotations

BEGINNING = """from dataclasses import dataclass
from marin_assets import Step, THIS_OUTPUT_PATH
@dataclass(frozen=True)
class Config:
    rate: float = 0.5
    output_path: str = THIS_OUTPUT_PATH
def make(config): ...
def steps():
"""
STEP = "Step(name='raw/b', fn=make, config=Config())"

EXPERIMENTS: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "no return": (f"{BEGINNING}    step = {STEP}\n", 8, ("steps() returned None", "Add a return")),
    "a step for a list": (f"{BEGINNING}    return {STEP}\n", 8, ("the step 'raw/b'", "Return [step]")),
    "a dict": (f"{BEGINNING}    return {{'b': {STEP}}}\n", 8, ("{'b': Step('raw/b')}", "expected a list of steps")),
    "a name in the list": (f"{BEGINNING}    return ['raw/b']\n", 8, ("'raw/b' as number 1", "expected a step")),
    "a list in the list": (f"{BEGINNING}    return [[{STEP}]]\n", 8, ("[Step('raw/b')]", "expected a step")),
    "no steps()": ("def step():\n    return []\n", 1, ("no function steps()", "Add one")),
    "steps() is a list": ("steps = []\n", 1, ("no function steps()", "Add one")),
    "an exception in steps()": (f"{BEGINNING}    return [1 / 0]\n", 9, ("ZeroDivisionError: division by zero",)),
    "an exception in a generator": (f"{BEGINNING}    yield {STEP}\n    yield 1 / 0\n", 10, ("ZeroDivisionError",)),
    "steps() with an argument": (
        "def steps(scale):\n    return []\n",
        1,
        ("called without arguments", "'scale'"),
    ),
    "a syntax error": (f"{BEGINNING}    return [\n", 9, ("SyntaxError", "'[' was never closed")),
    "an import error": ("import no_such_module\n", 1, ("No module named 'no_such_module'",)),
    "a wrong name of ours": ("from marin_assets.defaults import default_trian\n", 1, ("Did you mean 'default_train'",)),
    "a wrong type": (
        f"{BEGINNING}    return [Step(name='raw/b', fn=make, config=Config(rate='x'))]\n",
        9,
        ("config.rate is 'x'", "expected float"),
    ),
    "two paths of one step": (
        f"{BEGINNING}    return [\n        {STEP},\n        Step(name='raw/b', fn=make, config=Config(), "
        "override_output_path='x'),\n    ]\n",
        11,
        ("Two steps named 'raw/b'", "different output paths"),
    ),
    "a value that is not JSON": (
        f"{BEGINNING}    return [Step(name='raw/b', fn=make, config=Config(rate=float('nan')))]\n",
        9,
        ("config.rate is nan", "Use a finite number or None"),
    ),
}
