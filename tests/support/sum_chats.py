"""Chats about twice a digit, and preferences for the right answer: a nano model learns them in 100 steps.

The sum of two digits would take it some times as many: it has to attend to both.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

Chat = list[dict[str, str]]


def chat_of(*texts: str) -> Chat:
    """User and assistant in turn."""
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]


def doubles(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Rows of chats with one or two questions: "7 + 7", and 14."""
    return _chats(count, seed, lambda digit: digit)


def successors(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Rows of chats with one or two questions: "7 + 1", and 8."""
    return _chats(count, seed, lambda digit: 1)


def _chats(count: int, seed: int, added: Callable[[int], int]) -> list[dict[str, Any]]:
    drawn = random.Random(seed)
    rows = []
    for i in range(count):
        pairs = [(digit, added(digit)) for digit in (drawn.randrange(10) for _ in range(drawn.choice([1, 1, 2])))]
        chat = chat_of(*(text for a, b in pairs for text in (f"{a} + {b}", str(a + b))))
        rows.append({"id": f"{seed}-{i}", "messages": chat})
    return rows


def preferences(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Rows of preferences: the right answer is chosen, another number is rejected."""
    drawn = random.Random(seed)
    rows = []
    for i in range(count):
        digit = drawn.randrange(10)
        wrong = drawn.choice([number for number in range(19) if number != 2 * digit])
        question = f"{digit} + {digit}"
        rows.append(
            {
                "id": f"{seed}-{i}",
                "chosen": chat_of(question, str(2 * digit)),
                "rejected": chat_of(question, str(wrong)),
            }
        )
    return rows


def write_lines(path: Path, rows: Iterable[Mapping[str, Any] | str]) -> Path:
    """Write rows, or lines as they are, as JSONL."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines))
    return path
