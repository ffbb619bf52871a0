"""Chats about sums of single digits, and preferences for the right sum: what a nano model learns in some hundred steps."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Chat = list[dict[str, str]]


def chat_of(*texts: str) -> Chat:
    """User and assistant in turn."""
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]


def sums(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Rows of chats with one or two sums."""
    drawn = random.Random(seed)
    rows = []
    for i in range(count):
        pairs = [(drawn.randrange(10), drawn.randrange(10)) for _ in range(drawn.choice([1, 1, 2]))]
        chat = chat_of(*(text for a, b in pairs for text in (f"{a} + {b}", str(a + b))))
        rows.append({"id": f"{seed}-{i}", "messages": chat})
    return rows


def preferences(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Rows of preferences: the right sum is chosen, another number is rejected."""
    drawn = random.Random(seed)
    rows = []
    for i in range(count):
        a, b = drawn.randrange(10), drawn.randrange(10)
        wrong = drawn.choice([number for number in range(19) if number != a + b])
        question = f"{a} + {b}"
        rows.append(
            {"id": f"{seed}-{i}", "chosen": chat_of(question, str(a + b)), "rejected": chat_of(question, str(wrong))}
        )
    return rows


def write_lines(path: Path, rows: Iterable[Mapping[str, Any] | str]) -> Path:
    """Write rows, or lines as they are, as JSONL."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines))
    return path
