"""The id of a paper by the name of its member.

"2105/2105.04404.html" has the id 2105.04404, and "9107/hep-lat9107001.html" the id hep-lat/9107001, from before April
2007.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NEW = re.compile(r"(\d\d(?:0[1-9]|1[0-2]))\.(\d{4,5})(?:v(\d{1,4}))?")
OLD = re.compile(r"([a-z]+(?:-[a-z]+)*)(?:\.[A-Z]{2})?[_.]?(\d\d(?:0[1-9]|1[0-2]))(\d{3})(?:v(\d{1,4}))?")
"""An archive, perhaps with its subject, month and number. arXiv's canonical form leaves the subject out."""
SUFFIX = ".html"
SET = re.compile(r"(no-problem|warning|error)s?(?:[-_.]\w+)?\.zip", re.IGNORECASE)
"""The sets of ar5iv, by LaTeXML's worst message: "ar5iv-04-2024-no-problem.zip"."""
FIRST_YEAR = 91


@dataclass(frozen=True, kw_only=True)
class Paper:
    id: str
    """As arXiv writes it, without a version: "2105.04404", "hep-lat/9107001"."""
    version: int
    """0 of a name without one."""

    @property
    def url(self) -> str:
        return f"https://arxiv.org/abs/{self.id}"

    @property
    def month(self) -> str:
        """Month of the first version, such as "2021-05"."""
        digits = self.id.rpartition("/")[2]
        century = 19 if "/" in self.id and int(digits[:2]) >= FIRST_YEAR else 20
        return f"{century}{digits[:2]}-{digits[2:4]}"


def paper_of(member: str) -> Paper | None:
    """Return the paper of a member in a folder or at the root; None of a name that is no id of arXiv."""
    *folders, last = member.split("/")
    stem = last.removesuffix(SUFFIX)
    if match := NEW.fullmatch(stem):
        return Paper(id=f"{match[1]}.{match[2]}", version=int(match[3] or 0))
    match = OLD.fullmatch(stem)
    if match is None and folders:
        match = OLD.fullmatch(f"{folders[-1]}{stem}")  # "hep-lat/9107001.html"
    return None if match is None else Paper(id=f"{match[1]}/{match[2]}{match[3]}", version=int(match[4] or 0))


def set_of(file: str) -> str:
    """Return the set of an archive by its name: "no-problem", "warning", "error", or "" of another name."""
    match = SET.search(file.rpartition("/")[2])
    return match[1].lower() if match else ""
