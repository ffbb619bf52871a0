"""The place where drops arrive: a path with `{drop}` in the place of a drop's name.

    gs://crawls/{drop}/*.warc.gz     a drop is a folder
    /data/dumps/{drop}.jsonl.zst     a drop is a file
    s3://raw/{drop}-*.parquet        a drop is the files of one beginning

`*` and `?` stand for letters of one name, `**/` for any folders.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cached_property

from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

DROP = "{drop}"
_WILD = {"*": "[^/]*", "?": "[^/]", "**/": "(?:[^/]+/)*", DROP: "(?P<drop>[^/]+?)"}
_TOKEN = re.compile(r"\*\*/|\*|\?|\{drop\}")


class PatternError(MarinError, ValueError):
    """A path that does not name the place of drops: one sentence."""


@dataclass(frozen=True)
class DropPattern:
    """A path with `{drop}` in it. Raises PatternError."""

    path: str

    def __post_init__(self) -> None:
        if not isinstance(self.path, str) or self.path.count(DROP) != 1:
            raise PatternError(
                f"The place of drops is {self.path!r}, expected a path with {DROP} in it once, such as "
                "'gs://crawls/{drop}/*.warc.gz'."
            )
        if self.path.startswith("~"):
            raise PatternError(
                f"The place of drops {self.path!r} begins with '~', which is not expanded. Give the absolute path: "
                f"{os.path.expanduser(self.path)!r}."
            )
        if _TOKEN.search(self.base):
            raise PatternError(f"The place of drops {self.path!r} has a wildcard before {DROP}. Put it after {DROP}.")

    @property
    def base(self) -> str:
        """The folder that holds the drops."""
        return self.path[: self.path.index(DROP)].rpartition("/")[0]

    @cached_property
    def _below_base(self) -> str:
        return self.path[len(self.base) :].lstrip("/")

    @property
    def is_folder(self) -> bool:
        """Whether each drop is a folder of its own."""
        return "/" in self._below_base

    @property
    def is_deep(self) -> bool:
        """Whether files may be in folders of a drop's folder."""
        return "/" in self._below_base.partition("/")[2]

    @cached_property
    def _folder(self) -> re.Pattern[str]:
        return _regex(self._below_base.partition("/")[0])

    @cached_property
    def _file(self) -> re.Pattern[str]:
        return _regex(self._below_base)

    def drop_of_folder(self, name: str) -> str | None:
        """The drop that a folder in `base` is; None for another folder."""
        match = self._folder.fullmatch(name)
        return match["drop"] if match else None

    def drop_of_file(self, name: str) -> str | None:
        """The drop that a file below `base` belongs to; None for another file."""
        match = self._file.fullmatch(name)
        return match["drop"] if match else None

    def folder_of(self, drop: str) -> str:
        """The folder of a drop, where each has one."""
        return join(self.base, self._below_base.partition("/")[0].replace(DROP, drop))


def _regex(text: str) -> re.Pattern[str]:
    parts, end = [], 0
    for token in _TOKEN.finditer(text):
        parts += [re.escape(text[end : token.start()]), _WILD[token[0]]]
        end = token.end()
    return re.compile("".join([*parts, re.escape(text[end:])]))
