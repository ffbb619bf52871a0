"""Rows of known shapes as chats. ADAPTERS has them by name.

Each raises NotAChat for a row that it cannot read, and names the keys that it does not read. In every shape a key
"system" is the text of a system message before the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from marin_assets.stages.tokenize.chat.messages import (
    ASSISTANT,
    CALLS,
    EMPTY,
    SYSTEM,
    USER,
    WEIGHT,
    Messages,
    NotAChat,
    messages_of,
)

Row = Mapping[str, Any]
Read = TypeVar("Read")
SHAREGPT_ROLES = {"system": SYSTEM, "human": USER, "user": USER, "gpt": ASSISTANT, "chatgpt": ASSISTANT}
NAMES = frozenset({"id", SYSTEM})
"""Keys that the rows of every shape may have."""
PART = frozenset({"type", "text"})


@dataclass(frozen=True, kw_only=True)
class Adapter(Generic[Read]):
    """A shape of rows: a pure function of a row, and the keys that it reads."""

    read: Callable[[Row], Read]
    keys: tuple[str, ...] = ()
    """Keys of texts."""
    turns: tuple[str, ...] = ()
    """Keys of lists of messages."""
    role: str = "role"
    content: str = "content"

    def unread(self, row: Row) -> set[str]:
        """Return the keys with a value that `read` ignores: "source", or "messages.name" for one of a message."""
        read_keys = NAMES.union(self.keys, self.turns)
        unread_keys = {key for key, value in row.items() if key not in read_keys and value not in EMPTY}
        return unread_keys.union(*(self._of_turns(name, row[name]) for name in self.turns))

    def _of_turns(self, name: str, turns: list[Row]) -> Iterator[str]:
        read_keys = {self.role, self.content, WEIGHT, *CALLS}
        for turn in turns:
            yield from (f"{name}.{key}" for key, value in turn.items() if key not in read_keys and value not in EMPTY)
            if not isinstance(content := turn[self.content], str):
                yield from (
                    f"{name}.{self.content}.{key}"
                    for part in content
                    for key, value in part.items()
                    if key not in PART and value not in EMPTY
                )


def _openai(row: Row) -> Messages:
    return messages_of(row.get("messages"), system=row.get(SYSTEM))


def _sharegpt(row: Row) -> Messages:
    turns = row.get("conversations")
    return messages_of(turns, role="from", content="value", roles=SHAREGPT_ROLES, system=row.get(SYSTEM))


def _dolly(row: Row) -> Messages:
    parts = [row[key] for key in ("instruction", "context") if row.get(key)]
    if not all(isinstance(part, str) for part in parts):
        raise NotAChat("not_text")
    return messages_of(
        [{"role": USER, "content": "\n\n".join(parts)}, {"role": ASSISTANT, "content": row.get("response")}],
        system=row.get(SYSTEM),
    )


ADAPTERS = {
    # {"messages": [{"role": "user", "content": "…"}, …]}: OpenAI's chats; Tulu, UltraChat, SmolTalk.
    "openai": Adapter(read=_openai, turns=("messages",)),
    # {"conversations": [{"from": "human", "value": "…"}, …]}: ShareGPT; OpenHermes, SlimOrca.
    "sharegpt": Adapter(read=_sharegpt, turns=("conversations",), role="from", content="value"),
    # {"instruction": "…", "context": "…", "response": "…"}: Dolly. The context, if a row has one, follows.
    "dolly": Adapter(read=_dolly, keys=("instruction", "context", "response")),
}
