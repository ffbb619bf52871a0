"""Read instructions and the answers to them: conversations, in the order of files and rows.

    {"id": "7", "messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}]}
    {"question_id": 81, "category": "math", "turns": ["…", "…"], "reference": ["…", "…"]}     of MT-bench
    {"instruction": "…", "output": "…"}                                                       of AlpacaEval

A row without an id has a digest of its instruction. `category`, `reference` and `difficulty` stand in the row or in its
metadata.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.documents import BadRow, document_files, read_rows
from marin_resources.types.errors import MarinError

Message = dict[str, str]


class JudgeError(MarinError, ValueError):
    """Instructions, answers, a prompt or a judge that give no judgement. The message is the reason."""


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """An instruction of one or more turns, with the answers that it has."""

    id: str
    turns: tuple[str, ...]
    """Texts of the user."""
    answers: tuple[str, ...] = ()
    """Answers to the first turns; fewer than turns if the model gave no more."""
    system: str | None = None
    category: str | None = None
    references: tuple[str, ...] = ()
    """Right answers to the first turns."""
    difficulty: float | None = None
    """Difficulty of the instruction for models, in log-odds, as AlpacaEval publishes it for its own."""

    def messages_to(self, turn: int, answers: Sequence[str]) -> list[Message]:
        """The messages up to the text of the user in `turn`, counted from 0, with these answers to the earlier ones."""
        messages = [{"role": "system", "content": self.system}] if self.system else []
        for text, answer in zip(self.turns[:turn], answers, strict=False):
            messages += [{"role": "user", "content": text}, {"role": "assistant", "content": answer}]
        return [*messages, {"role": "user", "content": self.turns[turn]}]


def read_conversations(path: str) -> dict[str, Conversation]:
    """Return the conversations below `path` by id.

    Raises JudgeError for a row that is none, an id that occurs twice, or no row; FileNotFoundError without files.
    """
    conversations: dict[str, Conversation] = {}
    for file in document_files(path).shards:
        for number, row in read_rows(file.path):
            if isinstance(row, BadRow):
                raise JudgeError(
                    f"Row {number} of {file.path!r} is no row ({row.reason}: {row.detail}). Write it again."
                )
            try:
                conversation = conversation_of(row)
            except JudgeError as error:
                raise JudgeError(f"Row {number} of {file.path!r} {error}") from None
            if conversation.id in conversations:
                raise JudgeError(
                    f"The instruction {conversation.id!r} occurs twice below {path!r}, the second time in row {number} "
                    f"of {file.path!r}, expected each once. Remove one, or give it another id."
                )
            conversations[conversation.id] = conversation
    if not conversations:
        raise JudgeError(f"The files below {path!r} have no rows, expected instructions. Give another folder.")
    return conversations


def conversation_of(row: Mapping[str, Any]) -> Conversation:
    """The conversation of a row. Raises JudgeError, whose text continues "Row 3 …"."""
    metadata = row.get("metadata") if isinstance(row.get("metadata"), Mapping) else {}
    facts: Mapping[str, Any] = {**metadata, **{name: value for name, value in row.items() if value is not None}}  # type: ignore[dict-item]
    system, turns, answers = _parts(row)
    given = facts.get("id", facts.get("question_id"))
    references = facts.get("reference") or ()
    references = (references,) if isinstance(references, str) else references
    if not isinstance(references, list | tuple) or not all(isinstance(text, str) for text in references):
        raise JudgeError(f"has reference={references!r:.100}, expected a text for each turn. Correct it.")
    difficulty = facts.get("difficulty")
    if difficulty is not None and (
        isinstance(difficulty, bool) or not isinstance(difficulty, int | float) or not math.isfinite(difficulty)
    ):
        raise JudgeError(f"has difficulty={difficulty!r:.100}, expected a number. Correct it.")
    category = facts.get("category")
    return Conversation(
        id=_digest((system or "", *turns)) if given is None else str(given),
        turns=turns,
        answers=answers,
        system=system,
        category=None if category is None else str(category),
        references=tuple(references),
        difficulty=difficulty,
    )


def _parts(row: Mapping[str, Any]) -> tuple[str | None, tuple[str, ...], tuple[str, ...]]:
    """The system's text, the user's and the assistant's."""
    if "messages" in row:
        return _of_messages(row["messages"])
    if "turns" in row:
        turns: Any = row["turns"]
    elif "instruction" in row:
        turns = [row["instruction"]]
    else:
        raise JudgeError(f"has {sorted(row)}, expected messages, turns or instruction. Make it one of these shapes.")
    if not isinstance(turns, list | tuple) or not turns or not all(isinstance(text, str) for text in turns):
        raise JudgeError(f"has the turns {turns!r:.100}, expected one text or more. Correct it.")
    output = row.get("output")
    return None, tuple(turns), (output,) if isinstance(output, str) else ()


def _of_messages(messages: Any) -> tuple[str | None, tuple[str, ...], tuple[str, ...]]:
    if not isinstance(messages, list | tuple) or not all(
        isinstance(message, Mapping) and isinstance(message.get("content"), str) for message in messages
    ):
        raise JudgeError(f"has messages={messages!r:.100}, expected a list of role and content. Correct it.")
    roles = [message.get("role") for message in messages]
    texts = [message["content"] for message in messages]
    system = texts.pop(0) if roles[:1] == ["system"] else None
    roles = roles[1:] if system is not None else roles
    expected = [("user", "assistant")[place % 2] for place in range(len(roles))]
    if not roles or roles != expected:
        raise JudgeError(f"has the roles {roles}, expected user and assistant in turn, the user first. Correct it.")
    return system, tuple(texts[::2]), tuple(texts[1::2])


def _digest(texts: Sequence[str]) -> str:
    return hashlib.blake2b("\0".join(texts).encode(errors="replace"), digest_size=8).hexdigest()
