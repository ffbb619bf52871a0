"""Show Dagster what the store has: each complete output that its history does not know, and what has vanished.

After a loss of Dagster's database, in a new deployment, for outputs that were computed elsewhere or removed by hand. It
adds the keys of dynamic partitions too. It computes nothing; runs and ticks do not come back. Interrupted, it continues
where it was.

    marin sync --store       the other way round, for the store's own index: rebuild the markers of complete outputs

Exit code 0, also if there was nothing to do; 1 if a control file is damaged.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from marin_assets.catalog.code_location import select_nodes
from marin_assets.plan.partition_runs import PartitionRun, keys_of_sets
from marin_assets.run.options import FailedError, OptionError, add_prefix, add_selection, prefix_of
from marin_assets.run.output import print_line, print_stderr
from marin_assets.step.graph import Node
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.storage.control.control import refuse_store_without_conditions, require_reachable
from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.output.store import Store

if TYPE_CHECKING:
    import dagster as dg

    from marin_assets.assets.sync.differences import Differences

T = TypeVar("T")


def add_options(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    add_prefix(parser)
    parser.add_argument(
        "--dry-run", "--dry_run", action="store_true", help="print what Dagster does not know or shows wrongly"
    )
    parser.add_argument(
        "--store", action="store_true", help="rebuild the markers of all complete outputs below the prefix"
    )


def run(options: argparse.Namespace) -> int:
    store = store_at(prefix_of(options))
    require_reachable(store.prefix)
    if options.store:
        return _rebuild(store, options)
    _, nodes = select_nodes(options.selection, options.experiment)
    # late, for its weight: Dagster takes a second
    from marin_assets.assets.sync.differences import differences
    from marin_resources.configuration.settings import ensure_dagster_home
    from marin_resources.dagster_fixes.databases import open_instance

    ensure_dagster_home()
    with open_instance() as instance:
        difference = differences(instance, nodes, store)
        for sentence in difference.damaged:
            print_stderr(sentence)
        if options.dry_run:
            _list(difference, store)
        else:
            _sync(instance, difference, store)
    return 1 if difference.damaged else 0


def _list(difference: Differences, store: Store) -> None:
    for node in difference.unknown:
        print_line(node.output.label)
    for node in difference.vanished:
        print_line(f"{node.output.label} (vanished)")
    vanished = f", and shows {_outputs(len(difference.vanished))} that vanished" if difference.vanished else ""
    print_line(f"Dagster does not know {_outputs(len(difference.unknown))} at {store.prefix}{vanished}")


def _sync(instance: dg.DagsterInstance, difference: Differences, store: Store) -> None:
    # late, as above
    from marin_assets.assets.sync.missing_outputs import mark_missing
    from marin_assets.assets.sync.sync import report_unknown

    _add_keys(difference.unknown)
    added = _count(report_unknown(instance, difference.unknown, store), len(difference.unknown))
    gone = _count(mark_missing(instance, difference.vanished, store), len(difference.vanished))
    missing = f", and shows {_outputs(gone)} as missing" if gone else ""
    print_line(f"Dagster knows {_outputs(added)} more at {store.prefix}{missing}")


def _add_keys(unknown: Sequence[Node]) -> None:
    from marin_assets.assets.sync.dynamic_keys import add_keys  # late, as above

    runs = [PartitionRun(nodes=(node,), keys=(node.key,)) for node in unknown if node.key is not None]
    for name, new in add_keys(keys_of_sets(runs)).items():
        print_stderr(f"new in the set {name!r}: {len(new)} key{'s' * (len(new) != 1)}")


def _rebuild(store: Store, options: argparse.Namespace) -> int:
    from marin_resources.storage.index.rebuild import rebuild_marks  # late, as threads and a bucket's library are heavy

    if options.selection or options.experiment or options.dry_run:
        raise OptionError(
            "Got --store with a selection, an experiment or --dry-run, expected it alone: it is about all outputs."
        )
    refuse_store_without_conditions(store.prefix)
    try:
        rebuilt = rebuild_marks(store.prefix, progress=_with_progress)
    except (UnavailableError, OSError) as error:
        raise FailedError(
            f"The markers below {store.prefix!r} cannot be rebuilt: {error}. `marin sync --store` needs the right to "
            "list, read and write there."
        ) from error
    for sentence in rebuilt.damaged:
        print_stderr(sentence)
    for path in rebuilt.unknown:
        print_stderr(f"no marker, as the record does not say which version it is: {path}")
    print_line(
        f"{_outputs(rebuilt.outputs)} at {store.prefix}, {rebuilt.complete} of them complete: "
        f"{_markers(rebuilt.written)} written, {rebuilt.removed} removed"
    )
    return 1 if rebuilt.damaged else 0


def _count(done: Iterable[object], total: int) -> int:
    return sum(1 for _ in _with_progress(done, total))


def _with_progress(done: Iterable[T], total: int | None = None) -> Iterator[T]:
    from tqdm import tqdm  # late, as above

    yield from tqdm(done, total=total, unit=" outputs", disable=None, leave=False)


def _outputs(count: int) -> str:
    return f"{count} output{'s' * (count != 1)}"


def _markers(count: int) -> str:
    return f"{count} marker{'s' * (count != 1)}"
