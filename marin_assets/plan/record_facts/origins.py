"""The data sets that outputs are computed from, added up: sizes, licences, and what of them is not known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from marin_assets.step.graph import Node
from marin_assets.step.origin import Origin, Origins, together
from marin_resources.storage.manifest.bytes_progress import readable_bytes


@dataclass(frozen=True, kw_only=True)
class OriginTotal:
    """Some data sets together."""

    data_sets: int
    bytes: int
    """The sum of the known sizes."""
    sizes_unknown: int
    licences: tuple[str, ...]
    """The known licences, each once, sorted."""
    licences_unknown: int

    def describe(self) -> str:
        """A phrase: "from 3 data sets: 1.2 TB and 1 of unknown size, under CC-BY-4.0 and ODC-By-1.0"; "" for none."""
        if not self.data_sets:
            return ""
        sizes = [readable_bytes(self.bytes)] if self.data_sets > self.sizes_unknown else []
        sizes += [f"{self.sizes_unknown:,} of unknown size"] if self.sizes_unknown else []
        count = f"{self.data_sets:,} data set{'s' * (self.data_sets > 1)}"
        return f"from {count}: {_joined(sizes)}, under {self.describe_licences()}"

    def describe_licences(self) -> str:
        """A phrase: "CC-BY-4.0, ODC-By-1.0 and 2 of unknown licence"."""
        unknown = [f"{self.licences_unknown:,} of unknown licence"] if self.licences_unknown else []
        return _joined([*self.licences, *unknown])


def total_of_origins(origins: Origins) -> OriginTotal:
    """The sum of these data sets."""
    every = list(origins.values())
    return OriginTotal(
        data_sets=len(every),
        bytes=sum(origin.bytes or 0 for origin in every),
        sizes_unknown=sum(origin.bytes is None for origin in every),
        licences=tuple(sorted({origin.licence for origin in every if origin.licence is not None})),
        licences_unknown=sum(origin.licence is None for origin in every),
    )


def total_of_lineages(nodes: Iterable[Node]) -> OriginTotal:
    """The sum of the data sets that these nodes are computed from, each once."""
    return total_of_origins(together(node.origins for node in nodes))


def describe_origin(origin: Origin) -> str:
    """A phrase: "lab/texts: 1.2 GB, ODC-By-1.0, https://…"."""
    size = "size unknown" if origin.bytes is None else readable_bytes(origin.bytes)
    facts = (size, origin.licence or "licence unknown", origin.homepage)
    return f"{origin.name}: {', '.join(filter(None, facts))}"


def recorded_origins(node: Node) -> dict[str, Any]:
    """The fact of a record: the data sets that the node is computed from; nothing without any."""
    return {"origins": origins_as_json(node.origins)} if node.origins else {}


def origins_as_json(origins: Origins) -> dict[str, Any]:
    """Name of the step that downloads -> the known fields of the data set."""
    return {name: origin.to_dict() for name, origin in origins.items()}


def total_as_json(total: OriginTotal) -> dict[str, Any]:
    return {
        "data_sets": total.data_sets,
        "bytes": total.bytes,
        "sizes_unknown": total.sizes_unknown,
        "licences": list(total.licences),
        "licences_unknown": total.licences_unknown,
    }


def _joined(phrases: list[str]) -> str:
    *first, last = phrases
    return f"{', '.join(first)} and {last}" if first else last
