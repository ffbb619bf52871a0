"""The site of a task: the cluster of a fleet that computes it, the reason, and the inputs that move. Pure types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from marin_resources.hardware.resources import Resources
from marin_resources.storage.manifest.bytes_progress import readable_bytes
from marin_resources.types.errors import MarinError

SHOWN_MOVES = 3


class NoSiteError(MarinError):
    """No cluster can, or may, compute the step: one sentence."""


@dataclass(frozen=True, kw_only=True)
class ReaderNeeds:
    """The facts that decide where a reader of the output can run."""

    resources: Resources
    urls: tuple[str, ...] = ()
    """As of `PlacementRequest`."""


@dataclass(frozen=True, kw_only=True)
class PlacementRequest:
    """The facts that decide which cluster computes a step."""

    step: str
    resources: Resources
    places: Mapping[str, str] = field(default_factory=dict)
    """Input -> location of its data. An input is the label of a step's output, or a path that is no step's."""
    external: frozenset[str] = frozenset()
    """The inputs that have no record beside their data: no step's output, or an adopted one."""
    urls: tuple[str, ...] = ()
    """gs:// URLs in the config, which are read where they are."""
    size_of: Callable[[str], int | None] = lambda name: None
    """Bytes that the step reads of an input, or None if that is not known. May read control files."""
    earlier: str | None = None
    """The location of files of an earlier attempt, if the step can resume from them."""
    readers: tuple[ReaderNeeds, ...] = ()
    """The needs of the steps that read its output, directly or through others: the direct ones first."""
    budget_bytes: int = 0
    """Limit of the bytes of inputs that come from other regions."""


@dataclass(frozen=True, kw_only=True)
class Move:
    """An input that is in another region than the cluster."""

    what: str
    relative: str
    """The path of the input below the prefixes of both regions."""
    source: str
    """The region that has it."""
    bytes: int | None
    """None if no manifest contains it."""
    dollars: float
    """For the known bytes."""
    is_output: bool = True
    """Whether a step has computed it, so that its record is beside it."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """The cluster that a task goes to."""

    cluster: str
    """The name of the cluster in the catalogue."""
    region: str
    prefix: str
    """The prefix of the region's outputs."""
    why: str
    """A phrase: "where its inputs are"."""
    moves: tuple[Move, ...] = ()

    @property
    def bytes(self) -> int:
        """The bytes that move there, as far as they are known."""
        return sum(move.bytes or 0 for move in self.moves)

    @property
    def dollars(self) -> float:
        return sum(move.dollars for move in self.moves)

    def describe(self) -> str:
        """A phrase: see `describe`."""
        return describe([self])


def describe(sites: Sequence[Site]) -> str:
    """A phrase of sites on one cluster for one reason, as of the partitions of a step, with the sums of the moves:
    "on us-east5, the only cluster with TPU v5p-64; moves 2.1 TB from us-central2 ($42.00)"."""
    phrase = f"on {sites[0].cluster}, {sites[0].why}"
    moves = [move for site in sites for move in site.moves]
    sources = ", ".join(dict.fromkeys(move.source for move in moves if move.bytes))
    if sources:
        dollars = sum(site.dollars for site in sites)
        phrase += f"; moves {readable_bytes(sum(site.bytes for site in sites))} from {sources} (${dollars:,.2f})"
    unknown = list(dict.fromkeys(f"{move.what!r} from {move.source}" for move in moves if move.bytes is None))
    if unknown:
        more = f" and {len(unknown) - SHOWN_MOVES} more" if len(unknown) > SHOWN_MOVES else ""
        phrase += f"; moves {', '.join(unknown[:SHOWN_MOVES])}{more}, whose size is not known yet"
    return phrase
