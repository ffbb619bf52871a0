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


def _conversations(row: Row) -> Messages:
    return messages_of(row.get("conversations"), role="from", content="value", system=row.get(SYSTEM))


def _pair(prompt: str, answer: str) -> Adapter[Messages]:
    """A prompt and an answer, each a text in a column of its own."""
    return Adapter(read=lambda row: _turns(row, prompt, row.get(answer)), keys=(prompt, answer))


def _turns(row: Row, prompt: str, answer: Any) -> Messages:
    turns = [{"role": USER, "content": row.get(prompt)}, {"role": ASSISTANT, "content": answer}]
    return messages_of(turns, system=row.get(SYSTEM))


def _best_inference(row: Row) -> Messages:
    """The answer of the highest pass rate; of equal ones the first."""
    answers = [item for item in _list(row.get("inferences")) if isinstance(item.get("pass_rate"), int | float)]
    best = max(answers, key=lambda item: item["pass_rate"], default={})
    return _turns(row, "question", best.get("completion"))


def _first_response(row: Row) -> Messages:
    first = next(iter(_list(row.get("responses"))), {})
    return _turns(row, "question", first.get("response"))


def _list(value: Any) -> list[Row]:
    """The objects of a list. Raises NotAChat for another value."""
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise NotAChat("not_text")
    return value


def _messages_and_answer(row: Row) -> Messages:
    turns = row.get("messages")
    if not isinstance(turns, list):
        raise NotAChat("no_messages")
    return messages_of([*turns, {"role": ASSISTANT, "content": row.get("answer")}], system=row.get(SYSTEM))


PAIRS = (
    ("query", "response"),
    ("problem", "generated_solution"),
    ("problem", "proof"),
    ("question", "model_answer"),
    ("question", "model_reasoning"),
    ("prompt", "gold_standard_solution"),
)
"""Columns of a prompt and of its answer."""

ADAPTERS = {
    # {"messages": [{"role": "user", "content": "…"}, …]}: OpenAI's chats; Tulu, UltraChat, SmolTalk.
    "openai": Adapter(read=_openai, turns=("messages",)),
    # {"conversations": [{"from": "human", "value": "…"}, …]}: ShareGPT; OpenHermes, SlimOrca.
    "sharegpt": Adapter(read=_sharegpt, turns=("conversations",), role="from", content="value"),
    # {"instruction": "…", "context": "…", "response": "…"}: Dolly. The context, if a row has one, follows.
    "dolly": Adapter(read=_dolly, keys=("instruction", "context", "response")),
    # {"conversations": [{"from": "user", "value": "…"}, {"from": "assistant", …}]}: Bespoke-Stratos.
    "conversations": Adapter(read=_conversations, turns=("conversations",), role="from", content="value"),
    # {"query": "…", "response": "…"}: MetaMathQA; and the other PAIRS, each by its two columns.
    **{f"{prompt}/{answer}": _pair(prompt, answer) for prompt, answer in PAIRS},
    # {"question": "…", "inferences": [{"completion": "…", "pass_rate": 0.9}, …]}: AceCode. The best one is the answer.
    "question/inferences": Adapter(read=_best_inference, keys=("question", "inferences")),
    # {"question": "…", "responses": [{"response": "…"}, …]}: NaturalReasoning. The first one is the answer.
    "question/responses": Adapter(read=_first_response, keys=("question", "responses")),
    # {"messages": [… the prompt], "answer": "…"}: Dolphin-R1.
    "messages/answer": Adapter(read=_messages_and_answer, keys=("answer",), turns=("messages",)),
}
