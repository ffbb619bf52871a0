"""Convert files that are one JSON list each to lines of JSON, element by element.

In:  files `.json` below a folder, each one list: of objects, or of texts.
Out: rows, file for file under the same names with `.jsonl.zst`: an object as it is, a text as {"text": …}.

A file is read as a stream, so a list of gigabytes needs the memory of its largest element. An element of another type
and a file that is no list, or ends early, are errors with the place.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from marin_assets.documents.rows import write_rows
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.ray_tpu.shards.file_shards import FileShard, file_shards
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.files import open_to_read, stored_files
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

KINDS = ("jsonl",)

SUFFIX = ".json"
CHUNK_BYTES = 2**20
SPACE = " \t\r\n"


class JsonListError(MarinError, ValueError):
    """A file that is not one JSON list: one sentence with the file and the element."""


@dataclass(frozen=True, kw_only=True)
class JsonListsConfig:
    input_path: str
    """A folder with files `.json`; other files below it are ignored and counted."""
    text_key: str = versioned("text")
    """The key of an element that is a text."""
    output_path: str = THIS_OUTPUT_PATH


def rows_of_json_lists(config: JsonListsConfig) -> dict[str, int | float]:
    """Convert lists to rows. Returns files, rows, ignored_files. Raises JsonListError, FileNotFoundError."""
    files = stored_files(config.input_path)
    lists = [file for file in files if file.name.lower().endswith(SUFFIX) and file.name != "checksums.json"]
    if not lists:
        raise FileNotFoundError(f"No file {SUFFIX!r} exists below {config.input_path!r}. Correct input_path.")
    targets = [join(config.output_path, f"{file.name[: -len(SUFFIX)]}.jsonl.zst") for file in lists]
    counts = map_shards(convert_shard, file_shards(lists, targets, config=config), output_path=config.output_path)
    return {"files": len(lists), "rows": counts["rows"], "ignored_files": len(files) - len(lists)}


def convert_shard(shard: FileShard) -> dict[str, int]:
    """Convert one group of files. Returns rows."""
    rows = 0
    for file, target in zip(shard.inputs, shard.outputs, strict=True):
        rows += write_rows(target, _rows(file.path, shard.config.text_key), replace=False)
    return {"rows": rows}


def _rows(path: str, text_key: str) -> Iterator[dict[str, Any]]:
    for number, element in enumerate(elements_of(path), start=1):
        if not isinstance(element, dict | str):
            raise JsonListError(
                f"Element {number} of {path!r} is {element!r:.60}, expected an object or a text. Convert the file."
            )
        yield element if isinstance(element, dict) else {text_key: element}


def elements_of(path: str) -> Iterator[Any]:
    """Yield the elements of the list in a file. Raises JsonListError for a file that is none, or ends early."""
    with open_to_read(path) as file:
        text = _Text(path, file)
        if (first := text.character()) != "[":
            raise JsonListError(f"{path!r} begins with {first!r}, expected a JSON list. Convert it to lines of JSON.")
        text.position += 1
        if text.character() == "]":
            return
        while True:
            yield text.element()
            mark = text.character()
            text.position += 1
            if mark == "]":
                return
            if mark != ",":
                raise JsonListError(
                    f"{path!r} has {mark!r} after element {text.elements}, expected ',' or ']'. Download it again."
                )


class _Text:
    """The text of a file, of which a part is in memory, and the position in that."""

    def __init__(self, path: str, file: IO[bytes]) -> None:
        self.position = 0
        self.elements = 0
        self._path, self._file = path, file
        self._part = ""
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._decoder = json.JSONDecoder()

    def character(self) -> str:
        """The next character that is no space."""
        while True:
            while self.position < len(self._part) and self._part[self.position] in SPACE:
                self.position += 1
            if self.position < len(self._part):
                return self._part[self.position]
            if not self._read(CHUNK_BYTES):
                raise JsonListError(
                    f"{self._path!r} ends after element {self.elements}, within its list. Download it again."
                )

    def element(self) -> Any:
        """The next element. Each try to decode it reads twice as much, so that a large one is decoded a few times."""
        self.character()
        size_bytes = CHUNK_BYTES
        while True:
            try:
                value, self.position = self._decoder.raw_decode(self._part, self.position)
                self.elements += 1
                return value
            except json.JSONDecodeError as error:
                if not self._read(size_bytes):
                    raise JsonListError(
                        f"Element {self.elements + 1} of {self._path!r} is no JSON ({error.msg}). Download it again."
                    ) from None
                size_bytes *= 2

    def _read(self, size_bytes: int) -> bool:
        """Read on, and forget what has been decoded. False at the end of the file."""
        data = self._file.read(size_bytes)
        try:
            text = self._decode(data, final=not data)
        except UnicodeDecodeError as error:
            raise JsonListError(f"{self._path!r} is no UTF-8 ({error.reason}). Convert it.") from None
        self._part, self.position = self._part[self.position :] + text, 0
        return bool(data)
