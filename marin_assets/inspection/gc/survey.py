"""Survey of a prefix: the stored outputs, the needed ones, and those that could be collected."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from marin_assets.catalog.experiments_folder import Experiments, load_experiments
from marin_assets.inspection.gc.proposals import Choice, Proposals, propose
from marin_assets.inspection.gc.roots import Roots, find_roots
from marin_assets.inspection.gc.stored_outputs import StoredOutputs
from marin_assets.step.graph import Graph, build_graph
from marin_resources.storage.output.store import Store
from marin_resources.storage.usage.cost_estimate import PriceList


@dataclass(frozen=True, kw_only=True)
class Definitions:
    """The experiments of this code location."""

    graph: Graph
    unknown: tuple[str, ...]
    """A sentence for each experiment that does not load: what it needs is not known."""


@dataclass(frozen=True, kw_only=True)
class Look:
    stored: StoredOutputs
    roots: Roots
    proposals: Proposals


def read_definitions() -> Definitions:
    loaded: Experiments = load_experiments()
    graph = build_graph([step for steps in loaded.steps.values() for step in steps])
    return Definitions(graph=graph, unknown=tuple(loaded.left_out.values()))


def look(store: Store, definitions: Definitions, choice: Choice, prices: PriceList) -> Look:
    """Raises ConfigError for a pattern that finds nothing, ControlFileError and UnavailableError."""
    now, stored = datetime.now(UTC), StoredOutputs(store.prefix)
    roots = find_roots((store.prefix, *store.regions), stored, definitions.graph, keep_days=choice.keep_days, now=now)
    return Look(stored=stored, roots=roots, proposals=propose(stored, roots, choice, prices, now))
