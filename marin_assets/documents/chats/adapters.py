"""Rows of known shapes as chats. ADAPTERS has them by name, for `tokenize_chats`; `adapter_of` makes one of a shape.

Each raises NotAChat for a row that it cannot read, and names the keys that it does not read. In every shape a key
"system" is the text of a system message before the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from marin_assets.documents.chats.forms import FORMS, BestAnswer, Columns, Form, PromptAndAnswer, Turns
from marin_assets.documents.chats.messages import (
    ASSISTANT,
    CALLS,
    OF_TOOLS,
    TRAINED,
    USER,
    WEIGHT,
    Messages,
    Rules,
    messages_of,
)
from marin_assets.documents.chats.not_a_chat import EMPTY, NotAChat

Row = Mapping[str, Any]
Read = TypeVar("Read")
PART = frozenset({"type", "text"})
UNREAD_NAMES, UNREAD_CHARACTERS = 20, 60
"""Keys of rows that a shard counts by name, and the longest name."""


@dataclass(frozen=True, kw_only=True)
class Adapter(Generic[Read]):
    """A shape of rows: a pure function of a row, and the keys that it reads."""

    read: Callable[[Row], Read]
    keys: tuple[str, ...] = ()
    """Keys of texts."""
    turns: tuple[str, ...] = ()
    """Keys of lists of messages, or of texts."""
    role: str = "role"
    content: str = "content"
    rules: Rules = TRAINED

    def unread(self, row: Row) -> set[str]:
        """Return the keys with a value that `read` ignores: "source", or "messages.name" for one of a message."""
        read_keys = {"id", self.rules.system_column, *self.keys, *self.turns}
        unread_keys = {key for key, value in row.items() if key not in read_keys and value not in EMPTY}
        lists = [name for name in self.turns if not isinstance(row.get(name), str | None)]
        return unread_keys.union(*(self._of_turns(name, row[name]) for name in lists))

    def _of_turns(self, name: str, turns: list[Row]) -> Iterator[str]:
        read_keys = {self.role, self.content, WEIGHT, *CALLS, *(OF_TOOLS if self.rules.tools else ())}
        for turn in turns:
            yield from (f"{name}.{key}" for key, value in turn.items() if key not in read_keys and value not in EMPTY)
            content = turn.get(self.content)
            if content is not None and not isinstance(content, str):
                yield from (
                    f"{name}.{self.content}.{key}"
                    for part in content
                    for key, value in part.items()
                    if key not in PART and value not in EMPTY
                )


def adapter_of(form: Form, rules: Rules = TRAINED) -> Adapter[Messages]:
    """Return the adapter of a shape."""
    if isinstance(form, Turns):
        return Adapter(
            read=lambda row: _of_turns(row, form, rules),
            keys=() if form.answer is None else (form.answer,),
            turns=(form.column,),
            role=form.role,
            content=form.content,
            rules=rules,
        )
    if isinstance(form, Columns):
        return Adapter(read=lambda row: _of_columns(row, form, rules), keys=(*form.prompt, form.answer), rules=rules)
    if isinstance(form, PromptAndAnswer):
        return Adapter(
            read=lambda row: chat_of(row, row.get(form.prompt), row.get(form.answer), rules),
            turns=(form.prompt, form.answer),
            rules=rules,
        )
    return Adapter(read=lambda row: _of_best_answer(row, form, rules), keys=(form.question, form.answers), rules=rules)


def chat_of(row: Row, prompt: Any, answer: Any, rules: Rules) -> Messages:
    """Return the chat of a prompt and an answer, each a text or a list of messages."""
    turns = [*_messages(prompt, USER), *_messages(answer, ASSISTANT)]
    return messages_of(turns, system=row.get(rules.system_column), rules=rules)


def _messages(value: Any, role: str) -> list[Any]:
    is_list = isinstance(value, list) and all(isinstance(item, Mapping) and "role" in item for item in value)
    return value if is_list else [{"role": role, "content": value}]


def _of_turns(row: Row, form: Turns, rules: Rules) -> Messages:
    turns = row.get(form.column)
    if form.answer is not None:
        if not isinstance(turns, list):
            raise NotAChat("no_messages")
        names = form.roles if form.roles is not None and rules.roles is None else {ASSISTANT: ASSISTANT}
        role = next((name for name, role in names.items() if role == ASSISTANT), ASSISTANT)
        turns = [*turns, {form.role: role, form.content: row.get(form.answer)}]
    system = row.get(rules.system_column)
    return messages_of(turns, role=form.role, content=form.content, roles=form.roles, system=system, rules=rules)


def _of_columns(row: Row, form: Columns, rules: Rules) -> Messages:
    if len(form.prompt) == 1:
        prompt = row.get(form.prompt[0])
    else:
        parts = [row[key] for key in form.prompt if row.get(key)]
        if not all(isinstance(part, str) for part in parts):
            raise NotAChat("not_text")
        prompt = "\n\n".join(parts)
    return _turns(row, prompt, row.get(form.answer), rules)


def _of_best_answer(row: Row, form: BestAnswer, rules: Rules) -> Messages:
    answers = _answers(row.get(form.answers), form)
    best: Row
    if (best_by := form.best_by) is None:
        best = next(iter(answers), {})
    else:
        rated = [item for item in answers if _is_number(item.get(best_by))]
        best = max(rated, key=lambda item: item[best_by], default={})  # of equal ones the first
    return _turns(row, row.get(form.question), best.get(form.text), rules)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and value == value  # not NaN, which no order has


def _answers(value: Any, form: BestAnswer) -> list[Row]:
    """The objects of a list, of a list of texts, or of an object of lists. Raises NotAChat for another value."""
    if isinstance(value, Mapping) and all(isinstance(column, list) for column in value.values()):
        if len({len(column) for column in value.values()}) > 1:
            raise NotAChat("not_text")
        return [dict(zip(value, items, strict=True)) for items in zip(*value.values(), strict=True)]
    if not isinstance(value, list):
        raise NotAChat("not_text")
    if form.best_by is None:
        value = [{form.text: item} if isinstance(item, str) else item for item in value]
    if not all(isinstance(item, Mapping) for item in value):
        raise NotAChat("not_text")
    return value


def _turns(row: Row, prompt: Any, answer: Any, rules: Rules) -> Messages:
    turns = [{"role": USER, "content": prompt}, {"role": ASSISTANT, "content": answer}]
    return messages_of(turns, system=row.get(rules.system_column), rules=rules)


def count_unread(counts: Counter[str], unread: set[str]) -> None:
    """Count the row by each key that is not read. The data name the keys, so all but the first share one name."""
    named, names = {name for name in counts if name.startswith("unread_")}, set()
    for name in sorted(f"unread_{key}" for key in unread):
        if name not in named and (len(named) >= UNREAD_NAMES or len(name) > UNREAD_CHARACTERS):
            name = "unread_others"
        named.add(name)
        names.add(name)
    counts.update(names)


ADAPTERS = {name: adapter_of(form) for name, form in FORMS.items()}
