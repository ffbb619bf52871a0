"""The commands of deploy/vm/systemd, which every other way to deploy has too."""

from __future__ import annotations

import configparser
import shlex
from collections.abc import Sequence
from pathlib import Path

from running import ROOT

ADDRESS = ("-h", "--host", "-p", "--port", "--socket", "-w")
"""Options that say where something listens, or where another thing does."""


def unit_command(name: str) -> list[str]:
    """What marin-<name>.service starts, without the folder of the program."""
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.read(ROOT / f"deploy/vm/systemd/marin-{name}.service")
    program, *arguments = shlex.split(unit["Service"]["ExecStart"])
    return [Path(program).name, *arguments]


def without_address(command: Sequence[str]) -> list[str]:
    """The command without where it listens, sorted: an option's value comes after it as one word."""
    words, left = list(command), []
    while words:
        word = words.pop(0)
        if word in ADDRESS:
            words.pop(0)
        elif word.startswith("-") and words and not words[0].startswith("-"):
            left.append(f"{word} {words.pop(0)}")
        else:
            left.append(word)
    return sorted(left)
