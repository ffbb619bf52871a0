"""The hops through the code that a page lists, and whether the calls of real processes follow them.

### On one machine                             a way: a heading, and the tables below it
<!-- hops: the run -->                         the process of the next table
| 1 | `marin_assets/a.py` | `f` | … |          a hop: its label, file and function
| 2 | `marin_assets/b.py` | `Class.method` | … |
| 3 | 1–2 | | … |                              the hops of other rows, in the process of this table
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SUPPORT = Path(__file__).parent
HEADING = re.compile(r"^#+ (?P<title>.+)$")
PROCESS = re.compile(r"^<!-- hops: (?P<process>[\w ]+) -->$")
ROW = re.compile(r"^\| *(?P<label>\w*) *\| *(?P<place>[^|]+?) *\| *`?(?P<function>[\w.]*)`? *\|")
PLACE = re.compile(r"`(?P<file>[\w/]+\.py)`")
RANGE = re.compile(r"(?P<first>\w+)(?:–(?P<last>\w+))?")


@dataclass(frozen=True)
class Hop:
    file: str
    function: str


@dataclass(frozen=True)
class Table:
    """The hops of one process, one after the other."""

    process: str
    rows: tuple[tuple[Hop, ...], ...]

    @property
    def hops(self) -> list[Hop]:
        return [hop for row in self.rows for hop in row]


@dataclass(frozen=True)
class Call:
    pid: int
    process: str
    hop: Hop


def read_ways(text: str) -> dict[str, list[Table]]:
    """The tables of hops of a page, by the heading above them."""
    ways: dict[str, list[Table]] = {}
    labels: dict[str, tuple[Hop, ...]] = {}
    title, process, rows = "", None, list[tuple[Hop, ...]]()
    for line in [*text.splitlines(), ""]:
        if heading := HEADING.match(line):
            title = heading["title"]
        elif marked := PROCESS.match(line):
            process, rows = marked["process"], []
        elif process is not None and line.startswith("|"):
            if row := ROW.match(line):
                hops = _hops_of(row["place"], row["function"], labels)
                if hops:
                    rows.append(hops)
                    labels[row["label"]] = hops
        elif process is not None and rows:
            ways.setdefault(title, []).append(Table(process, tuple(rows)))
            process = None
    return ways


def _hops_of(place: str, function: str, labels: Mapping[str, tuple[Hop, ...]]) -> tuple[Hop, ...]:
    """The hops of a row. None for the head of a table and the line below it."""
    if file := PLACE.fullmatch(place):
        return (Hop(file["file"], function),)
    known = list(labels)
    found: list[Hop] = []
    for part in place.split(", "):
        named = RANGE.fullmatch(part)
        if named is None or named["first"] not in labels:
            return ()
        last = named["last"] or named["first"]
        for label in known[known.index(named["first"]) : known.index(last) + 1]:
            found.extend(labels[label])
    return tuple(found)


def noting(script: str, hops: Sequence[Hop], folder: Path) -> dict[str, str]:
    """The variables of processes that note their calls of the hops in `noted.txt` of the folder. `script`: the last
    word of the path of the script that is the run."""
    functions = folder / "functions.txt"
    functions.write_text("".join(f"{hop.file}\t{hop.function}\n" for hop in dict.fromkeys(hops)))
    path = os.pathsep.join(filter(None, (str(SUPPORT / "noted_calls"), os.environ.get("PYTHONPATH"))))
    calls = folder / "noted.txt"
    calls.touch()
    return {"PYTHONPATH": path, "NOTED_FUNCTIONS": str(functions), "NOTED_CALLS": str(calls), "NOTED_SCRIPT": script}


def read_calls(folder: Path, after: int = 0) -> list[Call]:
    """The calls that were noted in the folder, but for the first `after`."""
    lines = (folder / "noted.txt").read_text().splitlines()[after:]
    split = (line.split("\t") for line in lines)
    return [Call(int(pid), process, Hop(file, function)) for pid, process, file, function in split]


def first_missing(tables: Sequence[Table], calls: Sequence[Call]) -> str:
    """The first hop that is not called where the tables have it, as a phrase; "" if all are.

    The hops of a table are calls of one process. A hop is its first call there; if the tables have the hop more than
    once, the next call after the hop before it.
    """
    return _missing(tables, calls, 0, frozenset())


def _missing(tables: Sequence[Table], calls: Sequence[Call], start: int, known: frozenset[tuple[int, Hop]]) -> str:
    if not tables:
        return ""
    table, *rest = tables
    missing, reached = f"no hop is called in {table.process}", -1
    for pid in dict.fromkeys(call.pid for call in calls if call.process == table.process):
        place, lost, seen = start, "", known
        for hop in table.hops:
            first = place if (pid, hop) in seen else 0
            there = next((i for i in range(first, len(calls)) if calls[i].pid == pid and calls[i].hop == hop), -1)
            if there < place:
                what = "is not called" if there < 0 else "is called too early"
                lost = f"{hop.function} of {hop.file} {what} in {table.process}"
                break
            place, seen = there + 1, seen | {(pid, hop)}
        lost = lost or _missing(rest, calls, place, seen)
        if not lost:
            return ""
        if place > reached:
            missing, reached = lost, place
    return missing
