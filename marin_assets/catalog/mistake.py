"""The sentence of an error that a person's file caused: of every MarinError, of a call with wrong arguments, and of a
name that this software does not have.

In:  an exception that a script, or a file of experiments, did not handle.
Out: one sentence; None for an exception that is not known to be a mistake in the file, which keeps its traceback.

Python's own text for wrong arguments names neither what a function takes nor what was likely meant:
"Step.__init__() got an unexpected keyword argument 'nmae'". It is put into a sentence for this software's functions,
and for dataclasses, which are the configs.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any

from marin_assets.step import argument_check, marins_sentences
from marin_assets.step.error_line import is_persons
from marin_resources.types.errors import MarinError
from marin_resources.types.near_names import expected_one_of, near_names

PASS_ON = (argument_check.__file__, marins_sentences.__file__, dataclasses.__file__)
"""Files whose functions pass arguments on as they got them."""
OURS = ("marin_assets", "marin_resources", "marin_sensors")
SHOWN = 8
"""The most arguments that a sentence lists."""
_IMPORT = re.compile(r"cannot import name '(?P<name>\w+)' from '(?P<module>[\w.]+)'")
_CALL = re.compile(r"(?P<callee>[\w.<>]+)\(\) (?P<problem>.+)")
_UNKNOWN = re.compile(r"got an unexpected keyword argument '(?P<name>\w+)'")
_MISSING = re.compile(r"missing \d+ required (?:positional|keyword-only) arguments?: (?P<names>.+)")
_TOO_MANY = re.compile(r"takes .*positional arguments? but (?P<given>\d+) .*(?:was|were) given")


def sentence_of(error: BaseException) -> str | None:
    """Return the sentence of a mistake in a person's file; None for any other error."""
    if isinstance(error, MarinError):
        return str(error)
    if isinstance(error, TypeError):
        return _of_wrong_arguments(error)
    return _of_unknown_name(error) if isinstance(error, ImportError) else None


def _of_unknown_name(error: ImportError) -> str | None:
    match = _IMPORT.match(str(error))
    module = sys.modules.get(match["module"]) if match else None
    if match is None or module is None or match["module"].partition(".")[0] not in OURS:
        return None
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    return f"{match['module']} has no name {match['name']!r}, {expected_one_of(match['name'], names)}"


def _of_wrong_arguments(error: TypeError) -> str | None:
    call = _CALL.fullmatch(str(error))
    frame = _innermost(error.__traceback__)
    if call is None or frame is None:
        return None
    called = next(_called(frame, call["callee"].removesuffix(".__init__")), None)
    if called is None:
        return None
    name, problem = called.__name__, call["problem"]
    takes = list(inspect.signature(called).parameters.values())
    if unknown := _UNKNOWN.fullmatch(problem):
        return f"{name} has no argument {unknown['name']!r}{_meant(unknown['name'], takes)}"
    if missing := _MISSING.fullmatch(problem):
        return f"{name} lacks {missing['names']}, expected a value for each. Write {_written(name, takes)}."
    if too_many := _TOO_MANY.fullmatch(problem):
        given = int(too_many["given"]) - isinstance(called, type)  # without self
        return (
            f"{name} got {given} arguments without a name, expected {_positional(takes)}. Write "
            f"{_written(name, takes)}."
        )
    return f"{name} {problem}. Write {_written(name, takes)}."


def _innermost(trace: TracebackType | None) -> FrameType | None:
    """The frame of the call, if a person's file makes it: arguments that do not fit are refused before the called
    function begins. A wrong call within this software is a bug, and keeps its traceback."""
    frames = []
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    callers = [frame for frame in frames if frame.f_code.co_filename not in PASS_ON]
    return frames[-1] if callers and is_persons(callers[-1].f_code.co_filename) else None


def _called(frame: FrameType, qualname: str) -> Iterator[Callable[..., Any]]:
    """Yield what the frame can have called by that name, if it is this software's, or a dataclass."""
    own = list(frame.f_locals.values())
    values = [*own, *frame.f_globals.values(), *(item for value in own if type(value) is tuple for item in value)]
    modules = [vars(value).get(qualname.rpartition(".")[2]) for value in values if inspect.ismodule(value)]
    for value in (*values, *modules, *map(type, values)):
        if getattr(value, "__qualname__", None) != qualname or not callable(value):
            continue
        is_ours = str(getattr(value, "__module__", "")).partition(".")[0] in OURS
        if is_ours or (isinstance(value, type) and dataclasses.is_dataclass(value)):
            yield value


def _meant(name: str, takes: list[inspect.Parameter]) -> str:
    names = [parameter.name for parameter in takes]
    if near := near_names(name, names):
        return f". Did you mean {' or '.join(near)}?"
    return f", expected {_listed(names)}." if names else " and takes none."


def _listed(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} others" if len(names) > SHOWN else "")


def _positional(takes: list[inspect.Parameter]) -> str:
    number = sum(parameter.kind is not inspect.Parameter.KEYWORD_ONLY for parameter in takes)
    return f"at most {number}" if number else "a name for each"


def _written(name: str, takes: list[inspect.Parameter]) -> str:
    """The call with its required arguments, as it is written."""
    required = [parameter for parameter in takes if parameter.default is inspect.Parameter.empty]
    named = [
        f"{parameter.name}=…" if parameter.kind is inspect.Parameter.KEYWORD_ONLY else parameter.name
        for parameter in required or takes[:1]
    ]
    more = ", …" if len(takes) > len(named) else ""
    return f"{name}({', '.join(named)}{more})"
