"""The place where deliveries arrive: a path with `{drop}` in the place of a delivery's name.

    gs://crawls/{drop}/*.warc.gz     a delivery is a folder
    /data/dumps/{drop}.jsonl.zst     a delivery is a file
    s3://raw/{drop}-*.parquet        a delivery is the files of one beginning

`*` and `?` stand for letters of one name, `**/` for any folders.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cached_property

from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

DELIVERY = "{drop}"
_WILD = {"*": "[^/]*", "?": "[^/]", "**/": "(?:[^/]+/)*", DELIVERY: "(?P<delivery>[^/]+?)"}
_TOKEN = re.compile(r"\*\*/|\*|\?|\{drop\}")


class PatternError(MarinError, ValueError):
    """A path that does not name the place of deliveries: one sentence."""


@dataclass(frozen=True)
class DeliveryPattern:
    """A path with `{drop}` in it. Raises PatternError."""

    path: str

    def __post_init__(self) -> None:
        if not isinstance(self.path, str) or self.path.count(DELIVERY) != 1:
            raise PatternError(
                f"The place of deliveries is {self.path!r}, expected a path with {DELIVERY} in it once, such as "
                "'gs://crawls/{drop}/*.warc.gz'."
            )
        if self.path.startswith("~"):
            raise PatternError(
                f"The place of deliveries {self.path!r} begins with '~', which is not expanded. Give the absolute "
                f"path: {os.path.expanduser(self.path)!r}."
            )
        if _TOKEN.search(self.base):
            raise PatternError(
                f"The place of deliveries {self.path!r} has a wildcard before {DELIVERY}. Put it after {DELIVERY}."
            )

    @property
    def base(self) -> str:
        """The folder that holds the deliveries."""
        return self.path[: self.path.index(DELIVERY)].rpartition("/")[0]

    @cached_property
    def _below_base(self) -> str:
        return self.path[len(self.base) :].lstrip("/")

    @property
    def is_folder(self) -> bool:
        """Whether each delivery is a folder of its own."""
        return "/" in self._below_base

    @property
    def is_deep(self) -> bool:
        """Whether files may be in folders of a delivery's folder."""
        return "/" in self._below_base.partition("/")[2]

    @cached_property
    def _folder(self) -> re.Pattern[str]:
        return _regex(self._below_base.partition("/")[0])

    @cached_property
    def _file(self) -> re.Pattern[str]:
        return _regex(self._below_base)

    def delivery_of_folder(self, name: str) -> str | None:
        """The delivery that a folder in `base` is; None for another folder."""
        match = self._folder.fullmatch(name)
        return match["delivery"] if match else None

    def delivery_of_file(self, name: str) -> str | None:
        """The delivery that a file below `base` belongs to; None for another file."""
        match = self._file.fullmatch(name)
        return match["delivery"] if match else None

    def folder_of(self, delivery: str) -> str:
        """The folder of a delivery, where each has one."""
        return join(self.base, self._below_base.partition("/")[0].replace(DELIVERY, delivery))


def _regex(text: str) -> re.Pattern[str]:
    parts, end = [], 0
    for token in _TOKEN.finditer(text):
        parts += [re.escape(text[end : token.start()]), _WILD[token[0]]]
        end = token.end()
    return re.compile("".join([*parts, re.escape(text[end:])]))
