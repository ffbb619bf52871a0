"""JSON files that carry a `format_version`: parse one, and refuse a version newer than this software knows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FIELD = "format_version"


@dataclass(frozen=True, kw_only=True)
class VersionedJson:
    """One kind of file, such as the manifest of an output."""

    kind: str
    """For error sentences: "manifest"."""
    newest: int
    """The newest format version that this software reads, and the one that it writes."""
    error: type[Exception]
    """Raised with one sentence that names the kind, the path and the way out."""
    default: int | None = None
    """Version of a file without `format_version`. None refuses such a file."""
    if_newer: str = "Update this checkout."
    if_damaged: str = "Look at the file; move it aside if it is damaged."

    def parse(self, text: bytes | str, path: str) -> dict[str, Any]:
        """The fields of a file. Raises `error` unless the text is a JSON object of a known format version."""
        try:
            fields = json.loads(text)
        except ValueError as error:
            raise self.damaged(path, f"is not JSON ({error})") from error
        if not isinstance(fields, dict):
            raise self.damaged(path, "is not a JSON object")
        self.check(fields, path)
        return fields

    def check(self, fields: Mapping[str, Any], path: str) -> None:
        """Raise `error` unless the fields have a format version that this software knows."""
        version = fields.get(FIELD, self.default)
        if not isinstance(version, int):
            raise self.damaged(path, f"has the {FIELD} {version!r}, expected a number")
        if version > self.newest:
            raise self.error(
                f"The {self.kind} {path!r} has format version {version} and this software knows up to {self.newest}. "
                f"{self.if_newer}"
            )

    def damaged(self, path: str, problem: str) -> Exception:
        """The error for a file that cannot be used; `problem` follows the path: "is not JSON"."""
        return self.error(f"The {self.kind} {path!r} {problem}. {self.if_damaged}")

    def invalid(self, path: str, error: Exception) -> Exception:
        """The error for a file whose fields are missing, or have other types than expected."""
        return self.damaged(path, f"is not valid ({error!r})")
