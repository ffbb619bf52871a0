"""RedPajama's signals against RedPajama's own code: the same values, and how many more documents a second.

    python tests/benchmarks/signals.py REDPAJAMA [TEXTS…]

REDPAJAMA is a checkout of github.com/togethercomputer/RedPajama-Data (revision 6d2cee9), which is no package; its
environment is one of its own, with the NLTK of its time: 3.10 splits words by another engine. TEXTS are files of rows
with "text", such as those of `sides/mixed_texts.py`, beside texts of this machine's Python and hostile ones. One
process and one core each, turn by turn; the fastest of three counts.

    same values   every signal of every text, of signals of lines those of every line with its borders. A difference is
                  printed.
    speed         the same signals of 2,000 texts of this machine's Python. Seconds are the process's on its core.

Limits: no difference, 4 times RedPajama's speed. Exits 1 if one is missed. Takes four minutes.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "sides"))

from filters import run
from filters_texts import texts

from marin_assets.stages.filter.signals.redpajama import DOCUMENT_SIGNALS, LINE_SIGNALS
from marin_assets.stages.filter.signals.redpajama_text import RedPajamaText
from marin_assets.stages.filter.signals.registry import measure_of

PACKAGES = ("nltk==3.8.1", "numpy", "msgspec", "typing-extensions")
SIDES = Path(__file__).resolve().parent / "sides"
COUNT, ROUNDS, SPEED = 2000, 3, 4.0


def main() -> int:
    source = Path(sys.argv[1]) / "app" / "src"
    if not (source / "core").is_dir():
        raise SystemExit(f"{str(source)!r} has no folder 'core': expected a checkout of RedPajama-Data.")
    plain = texts(COUNT)
    mixed = [json.loads(line)["text"] for path in sys.argv[2:] for line in Path(path).read_text().splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        missed = compare_values({"Python's": plain, "given": mixed, "hostile": hostile()}, source, folder)
        missed += compare_speed(plain, source, folder)
    print("missed: " + ", ".join(missed) if missed else "all limits held")
    return 1 if missed else 0


def hostile() -> list[str]:
    """Texts on which splitting, counting and rounding differ first."""
    dice = random.Random(0)
    characters = [
        " ",
        "\n",
        "\t",
        "\r",
        "\x0b",
        "\x1c",
        "\x85",
        "\u2028",
        "\xa0",
        "\u3000",
        ".",
        "!",
        "…",
        "_",
        "#",
        "{",
    ]
    characters += [
        "a",
        "É",
        "ß",
        "Σ",
        "ς",
        "İ",
        "ǅ",
        "Ⓐ",
        "²",
        "٣",
        "Ⅷ",
        "一",
        "字",
        "\u0301",
        "\u0345",
        "\u200d",
        "\ud800",
    ]
    characters += [
        "javascript",
        "lorem ipsum",
        "Lorem, Ipsum",
        "•",
        "–",
        "”",
        "\u037e",
        "\u2000",
        "\u1fef",
        "𝐀",
        "𝟘",
        "가",
    ]
    drawn = ["".join(dice.choices(characters, k=dice.randint(1, 300))) for _ in range(1500)]
    repeated = [" ".join(dice.choices(["ab", "cd", "ef", "g"], k=dice.randint(1, 400))) for _ in range(300)]
    return [
        *("", " ", "\n", "\n\n\n", " \n ", ".", "...", "\u0301", "a", "A\n", "a.\n.", "\ufeff", "\x00"),
        *("a" * 1_000_000, "a " * 200_000, "\n" * 200_000, "a b c d e f g h i j k\n" * 20_000, "." * 500_000),
        *("x y " * 5 + "z", "字" * 100_000, "e\u0301" * 100_000, "Ⓐ! Ⓐ", "lorem ipsum " * 1000, "{}" * 50_000),
        *drawn,
        *repeated,
    ]


def compare_values(groups: dict[str, list[str]], source: Path, folder: str) -> list[str]:
    path, out = f"{folder}/texts.jsonl", f"{folder}/values.jsonl"
    every = [text for group in groups.values() for text in group]
    write_texts(path, every)
    run_redpajama(source, path, "values", out)
    names = [name for name, group in groups.items() for _ in group]
    different = dict.fromkeys(groups, 0)
    with Path(out).open() as lines:
        for number, (name, text, line) in enumerate(zip(names, every, lines, strict=True)):
            for signal in differences(text, json.loads(line)):
                different[name] += 1
                print(f"    text {number} ({name}): {signal}, {text[:40]!r}")
    for name, group in groups.items():
        print(f"{name:10} {len(group):6} texts, {different[name]} of their values differ")
    return [f"values of the {name} texts" for name, count in different.items() if count]


def differences(text: str, theirs: dict[str, Any]) -> list[str]:
    """Return the signals whose values or spans are not RedPajama's."""
    measured = RedPajamaText(text)
    names = [
        name for name, signal in DOCUMENT_SIGNALS.items() if theirs.pop(name) != [[0, len(text), signal(measured)]]
    ]
    borders = [0]
    for line in text.split("\n"):
        borders.append(min(borders[-1] + len(line) + 1, len(text)))
    for name, signal in LINE_SIGNALS.items():
        spans = [list(row) for row in zip(borders, borders[1:], signal(measured), strict=False)]
        expected = theirs.pop(name)
        if spans != expected and not (
            text == "" and expected == [[0, 0, None]]
        ):  # one of the six has a row for no line
            names.append(name)
    return names + list(theirs)


def compare_speed(documents: list[str], source: Path, folder: str) -> list[str]:
    path = f"{folder}/timed.jsonl"
    write_texts(path, documents)
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(run_ours(path))
        theirs.append(run_redpajama(source, path, "seconds"))
    for name, seconds in (("here", ours), ("RedPajama", theirs)):
        print(f"{name:10} {len(documents) / min(seconds):8.0f} documents a second")
    ratio = min(theirs) / min(ours)
    every = ", ".join(f"{b / a:.1f}" for a, b in zip(ours, theirs, strict=True))
    print(f"{ratio:.1f} times (limit {SPEED:g}; {every})")
    return [] if ratio >= SPEED else ["speed"]


def write_texts(path: str, documents: list[str]) -> None:
    Path(path).write_text("".join(json.dumps(text) + "\n" for text in documents))


def run_ours(path: str) -> float:
    """Seconds of a process of its own: nothing is remembered from before."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    return float(run([sys.executable, __file__, "--seconds", path], environment))


def our_seconds(path: str) -> float:
    measure = measure_of([*DOCUMENT_SIGNALS, *LINE_SIGNALS])
    measure(RedPajamaText("Söme words. " * 100))
    documents = [json.loads(line) for line in Path(path).read_text().splitlines()]
    began = time.process_time()
    for text in documents:
        measure(RedPajamaText(text))
    return time.process_time() - began


def run_redpajama(source: Path, *arguments: str) -> float:
    uv = Path(__file__).resolve().parents[2] / ".tools/bin/uv"
    uv_path = str(uv) if uv.exists() else shutil.which("uv")
    if uv_path is None:
        raise RuntimeError(f"uv is not at {str(uv)!r} and not on the path. Run `make init` first.")
    packages = [word for name in PACKAGES for word in ("--with", name)]
    command = [uv_path, "run", "--isolated", "--no-project", "--python", sys.executable, *packages, "python"]
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MARIN_", "DAGSTER_", "PYTHON", "RAY_"))}
    return float(run([*command, str(SIDES / "signals_redpajama.py"), str(source), *arguments], clean))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--seconds"]:
        print(our_seconds(sys.argv[2]))
        sys.exit(0)
    sys.exit(main())
