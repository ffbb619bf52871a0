"""Texts that every machine has, and what becomes of them when they are spoilt, so that every filter has work."""

from __future__ import annotations

import importlib.metadata
import inspect
import pydoc_data.topics
import random
import re
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

MAX_CHARACTERS = 8000


def texts(count: int, seed: int = 0) -> list[str]:
    """`count` texts of this machine's Python: half as they are, half spoilt."""
    dice = random.Random(seed)
    plain = list(dict.fromkeys(_pieces()))
    dice.shuffle(plain)
    if not plain:
        raise RuntimeError("This Python has no source and no package metadata to take texts from.")
    whole = [plain[i % len(plain)] for i in range((count + 1) // 2)]
    return whole + [SPOILT[i % len(SPOILT)](dice.choice(plain), dice) for i in range(count // 2)]


def _pieces() -> Iterator[str]:
    for topic in pydoc_data.topics.topics.values():
        yield from cut(topic)
    for distribution in sorted(importlib.metadata.distributions(), key=lambda d: str(d.metadata["Name"]).lower()):
        yield from cut(distribution.metadata.get_payload() or "")
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        source = path.read_text(errors="replace")
        yield from (inspect.cleandoc(found) for found in re.findall(r'"""(.{200,}?)"""', source, re.DOTALL))
        yield from cut(source)


def cut(text: str) -> Iterator[str]:
    """Pieces of whole paragraphs."""
    piece = ""
    for paragraph in text.split("\n\n"):
        piece += paragraph + "\n\n"
        if len(piece) > MAX_CHARACTERS // 2:
            yield piece[:MAX_CHARACTERS]
            piece = ""
    if len(piece) > 200:
        yield piece[:MAX_CHARACTERS]


def _prose(text: str, _: random.Random) -> str:
    """Paragraphs as one line each: what extracted web pages look like."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _repeated_lines(text: str, dice: random.Random) -> str:
    lines = text.splitlines() or [text]
    again = dice.choices(lines, k=int(len(lines) * dice.choice([0.05, 0.2, 0.6])))
    return "\n".join(lines + again)


def _repeated_paragraphs(text: str, dice: random.Random) -> str:
    paragraphs = _prose(text, dice).split("\n\n")
    return "\n\n".join(paragraphs + paragraphs[: int(len(paragraphs) * dice.choice([0.1, 0.3, 0.6]))])


def _repeated_phrases(text: str, dice: random.Random) -> str:
    words = text.split()
    at = dice.randrange(max(1, len(words) - 12))
    phrase = words[at : at + dice.randint(2, 11)]
    for _ in range(int(len(words) * dice.choice([0.01, 0.02, 0.04]))):
        words[dice.randrange(len(words)) : 0] = phrase
    return " ".join(words)


def _list(text: str, dice: random.Random) -> str:
    return "\n".join(
        f"{dice.choice('-•')} {' '.join(line.split()[: dice.randint(1, 9)])}" for line in text.splitlines()
    )


def _truncated(text: str, dice: random.Random) -> str:
    lines = (line[: dice.randint(10, 60)] for line in text.splitlines() if line.strip())
    return "\n".join(line + dice.choice(["...", "…", ""]) for line in lines)


def _without_marks(text: str, dice: random.Random) -> str:
    return re.sub(r"[.!?\"']", "", _prose(text, dice))


def _symbols(text: str, dice: random.Random) -> str:
    mark = dice.choice(["#", "…", "...", "1 2 3", "== |"])
    return " ".join(f"{word} {mark}" if dice.random() < 0.4 else word for word in text.split())


def _short(text: str, dice: random.Random) -> str:
    return " ".join(text.split()[: dice.randint(40, 70)])


def _word_lengths(text: str, dice: random.Random) -> str:
    words = text.split()
    if dice.random() < 0.5:
        return " ".join(word[: dice.randint(1, 3)] for word in words)
    return " ".join("".join(words[i : i + 3]) for i in range(0, len(words), 3))


def _without_stop_words(text: str, dice: random.Random) -> str:
    words = _prose(text, dice).split(" ")
    return " ".join(
        word for word in words if word.lower() not in {"the", "be", "to", "of", "and", "that", "have", "with"}
    )


def _web(text: str, dice: random.Random) -> str:
    """Prose with what C4 looks for."""
    lines = [" ".join(line.split()) for line in re.split(r"(?<=[.!?]) ", _prose(text, dice))]
    extra = [
        "Please enable JavaScript to go on.",
        "This site uses cookies.",
        "Read our privacy policy first, thank you.",
        "Home",
        "x" * 1001 + " is a word.",
        "It was found[1] and found again [citation needed] in 2001. [12]",
        "[edit]",
    ]
    extra += [dice.choice(["lorem ipsum dolor sit amet.", "a { is a bracket."])] if dice.random() < 0.2 else []
    kept = [line.replace("{", "(") for line in lines]
    for line in dice.sample(extra, k=dice.randint(1, len(extra))):
        kept.insert(dice.randrange(len(kept) + 1), line)
    return dice.choice(["\n", "\n\n", "\r\n"]).join(kept)


SPOILT: tuple[Callable[[str, random.Random], str], ...] = (
    _prose,
    _repeated_lines,
    _repeated_paragraphs,
    _repeated_phrases,
    _list,
    _truncated,
    _without_marks,
    _symbols,
    _short,
    _word_lengths,
    _without_stop_words,
    _web,
)

if __name__ == "__main__":
    print(len(texts(int(sys.argv[1]))))
