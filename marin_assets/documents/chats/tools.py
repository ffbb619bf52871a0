"""Calls and definitions of tools, in the form that chat templates of Hugging Face take.

A call is {"type": "function", "function": {"name", "arguments"}}, with the "id" that it had. Its arguments are an
object; OpenAI's are the text of one. A definition is {"type": "function", "function": {"name", …}}. Keys with a null
are left out of objects: a column of parquet has one for each key that another row has.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from marin_assets.documents.chats.not_a_chat import EMPTY, NotAChat

Tools = list[dict[str, Any]]
MOST_LEVELS = 64
"""Limit of the nesting of a value. Python's own depends on who calls, so it would differ from machine to machine."""


def calls_of(turn: Mapping[str, Any], *, is_answer: bool) -> list[dict[str, Any]]:
    """Return the calls in "tool_calls", or the one in "function_call", of an answer; no other message may call.

    Raises NotAChat: bad_tool_call.
    """
    calls = turn.get("tool_calls")
    if calls in EMPTY:
        calls = [turn.get("function_call")]
    if not is_answer or not isinstance(calls, Sequence) or isinstance(calls, str | bytes):
        raise NotAChat("bad_tool_call")
    return [_call(call) for call in calls]


def call_of_text(text: str) -> list[dict[str, Any]]:
    """Return the calls of a text that is JSON: one call, or a list of some. Raises NotAChat: bad_tool_call."""
    value = _json(text, "bad_tool_call")
    calls = value if isinstance(value, list) else [value]
    if not calls:
        raise NotAChat("bad_tool_call")
    return [_call(call) for call in calls]


def tools_of(value: Any) -> Tools:
    """Return the definitions in a column: a list, or the text of one; none of an empty column.

    Raises NotAChat: bad_tools.
    """
    if isinstance(value, str):
        value = _json(value, "bad_tools") if value.strip() else None
    if value in EMPTY:
        return []
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise NotAChat("bad_tools")
    return [_definition(tool) for tool in value]


def _call(call: Any) -> dict[str, Any]:
    function = call.get("function", call) if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str) or not function["name"]:
        raise NotAChat("bad_tool_call")
    arguments = function.get("arguments")
    if isinstance(arguments, str) and arguments.strip():
        arguments = _json(arguments, "bad_tool_call")
    else:
        arguments = _plain({} if arguments is None or isinstance(arguments, str) else arguments, "bad_tool_call")
    if not isinstance(arguments, dict):
        raise NotAChat("bad_tool_call")
    id = {"id": call["id"]} if isinstance(call.get("id"), str) and call["id"] else {}
    return {**id, "type": "function", "function": {"name": function["name"], "arguments": arguments}}


def _definition(tool: Any) -> dict[str, Any]:
    function = tool.get("function", tool) if isinstance(tool, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str) or not function["name"]:
        raise NotAChat("bad_tools")
    plain = {key: value for key, value in function.items() if key != "type"}
    if isinstance(plain.get("parameters"), str):  # where columns have one type, objects are the text of one
        plain["parameters"] = _json(plain["parameters"], "bad_tools")
    return {"type": "function", "function": _plain(plain, "bad_tools")}


def _json(text: str, reason: str) -> Any:
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise NotAChat(reason) from error
    if not is_shallow(value):
        raise NotAChat(reason)
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _plain(value: Any, reason: str) -> Any:
    """The value as JSON, without null values of objects. Raises NotAChat for one without a form in JSON."""
    if not is_shallow(value):
        raise NotAChat(reason)
    try:
        return json.loads(json.dumps(value, allow_nan=False), object_pairs_hook=_without_nulls)
    except (ValueError, TypeError, RecursionError) as error:
        raise NotAChat(reason) from error


def is_shallow(value: Any, levels: int = MOST_LEVELS) -> bool:
    """Whether objects and lists are nested at most so many levels deep."""
    if isinstance(value, Mapping):
        return levels > 0 and all(is_shallow(item, levels - 1) for item in value.values())
    if isinstance(value, list | tuple):
        return levels > 0 and all(is_shallow(item, levels - 1) for item in value)
    return True


def _without_nulls(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key: value for key, value in pairs if value is not None}


def texts_of(messages: Iterable[Mapping[str, Any]], tools: Tools) -> Iterator[str]:
    """Yield every text that a template can render: contents, and the names and values in calls and definitions."""
    for message in messages:
        yield message["content"]
        if len(message) > 2:
            yield from _texts([value for key, value in message.items() if key not in ("role", "content")])
    yield from _texts(tools)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
