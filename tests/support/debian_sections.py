"""Descriptions of Debian's packages by their section: short texts of ten classes, as `apt-cache dumpavail` prints them.

The sections are those that say what a package is about. The others say its form or its language (libs, libdevel, doc,
python, …).
"""

from __future__ import annotations

import random
import shutil
import subprocess

SECTIONS = ("database", "editors", "electronics", "games", "graphics", "mail", "math", "science", "sound", "video")
COUNT = 145
"""Descriptions of a section."""


def debian_sections() -> dict[str, list[str]]:
    """Section -> its descriptions, of one line each, drawn; empty where Debian's lists of packages are not."""
    if shutil.which("apt-cache") is None:
        return {}
    printed = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=False).stdout
    texts: dict[str, set[str]] = {section: set() for section in SECTIONS}
    for stanza in printed.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line and not line.startswith(" "))
        section = fields.get("Section", "").rpartition("/")[2]
        description = fields.get("Description") or fields.get("Description-en")
        if section in texts and description:
            texts[section].add(description.strip())
    if any(len(found) < COUNT for found in texts.values()):
        return {}
    return {section: random.Random(section).sample(sorted(found), COUNT) for section, found in texts.items()}
