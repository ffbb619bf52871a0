"""The origin of the data that a step downloads: the data set, its licence and its size.

It is shown by plans, recorded beside the outputs, and shown on the pages of all assets that are computed from it. It
changes no version: a licence that is corrected computes nothing again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from marin_assets.step.values import ConfigError


@dataclass(frozen=True, kw_only=True)
class Origin:
    """A data set as its publisher describes it. What is not known for certain is None, and is shown as unknown."""

    name: str
    """The name under which it is published, such as "HuggingFaceFW/fineweb-edu"."""
    licence: str | None = None
    """The licence, by the identifier of SPDX if it has one: "ODC-By-1.0"."""
    bytes: int | None = None
    """Size of the files that are downloaded, as published; often a rounded number."""
    homepage: str | None = None
    """URL of the page that describes it."""

    def __post_init__(self) -> None:
        for field in ("name", "licence", "homepage"):
            text = getattr(self, field)
            if not (isinstance(text, str) and text.strip()) and (text is not None or field == "name"):
                raise ConfigError(f"An origin has {field}={text!r}, expected a text. Leave out what is not known.")
        size = self.bytes
        if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 0):
            raise ConfigError(
                f"The origin {self.name!r} has bytes={size!r}, expected a whole number of bytes, 0 or more. Leave it "
                "out if it is not known."
            )

    def to_dict(self) -> dict[str, Any]:
        """The known fields, as JSON."""
        fields = {"name": self.name, "licence": self.licence, "bytes": self.bytes, "homepage": self.homepage}
        return {name: value for name, value in fields.items() if value is not None}


Origins = Mapping[str, Origin]
"""Name of the step that downloads -> the origin of its data."""
NONE: Origins = MappingProxyType({})


def together(parts: Iterable[Origins]) -> Origins:
    """The origins of several steps, each once. Steps without any share one mapping, as most of a large DAG do."""
    different = list({id(origins): origins for origins in parts if origins}.values())
    if len(different) < 2:
        return different[0] if different else NONE
    return {name: origin for origins in different for name, origin in origins.items()}
