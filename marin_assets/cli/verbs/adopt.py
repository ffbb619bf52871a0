"""Let data that were made elsewhere, or by an older recipe, serve as the output of a step. Nothing is copied.

    marin adopt tokenized/web --from tokenized/web-old-3f2a1c --why "renamed"
    marin adopt tokenized/web --undo

The path is relative to the prefix, absolute, or a URL. An output with a manifest is compared with it; of other data one
is taken. Nothing is written at that path. Readers read the data there, so they must stay.

Exit code 0; 1 if the data cannot be adopted, or the adoption not be undone: then nothing has changed.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from marin_assets.catalog.code_location import select_nodes
from marin_assets.cli.hint import about_step, to_compute
from marin_assets.plan.partition_runs import PartitionRun
from marin_assets.plan.record_facts.adopted_inputs import facts_of_adopted, made_from
from marin_assets.run.options import OptionError, add_prefix, prefix_of
from marin_assets.run.output import print_line, print_stderr
from marin_assets.run.partition_options import add_keys_of
from marin_assets.step.graph import Graph, Node
from marin_assets.step.values import ConfigError
from marin_resources.configuration.settings import dagster_home, ensure_dagster_home
from marin_resources.host.process import user_name
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.storage.adoption.adopt import adopt, is_adopted_from
from marin_resources.storage.adoption.errors import AdoptionError
from marin_resources.storage.adoption.source import Source, find_source
from marin_resources.storage.adoption.source_path import place_of
from marin_resources.storage.adoption.undo import find_adopted, undo
from marin_resources.storage.control.control import require_reachable
from marin_resources.storage.manifest.bytes_progress import readable_bytes
from marin_resources.storage.output.store import Store


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("step", help="the name of one step")
    parser.add_argument("--from", dest="source", metavar="PATH", help="where the data are")
    parser.add_argument("--why", metavar="TEXT", help="a reason, for everyone who reads the data as this output")
    parser.add_argument("--partition", metavar="KEY", help="the partition, of a step that has some")
    parser.add_argument("--checksums", action="store_true", help="read all bytes of a large output to compare them")
    parser.add_argument("--undo", action="store_true", help="take the adoption back")
    parser.add_argument("--experiment", metavar="NAME", help="only steps of this experiment")
    parser.add_argument("--script", metavar="FILE", help="the steps of this script, not those of the experiments")
    add_prefix(parser)


def run(options: argparse.Namespace) -> int:
    _require_consistent(options)
    store = store_at(prefix_of(options))
    require_reachable(store.prefix)
    graph, nodes = select_nodes([options.step], options.experiment, options.script)
    node = _one(nodes, options.step, options.partition)
    try:
        return _undo(graph, node, store, options) if options.undo else _adopt(node, store, options)
    except AdoptionError as error:
        print_stderr(str(error))
        return 1


def _require_consistent(options: argparse.Namespace) -> None:
    """Raise OptionError unless the options give either the data to adopt and a reason, or --undo alone."""
    if options.undo:
        given = [name for name in ("source", "why", "checksums") if getattr(options, name)]
        if given:
            names = ", ".join({"source": "--from"}.get(name, f"--{name}") for name in given)
            raise OptionError(f"marin adopt: got --undo and {names}, expected --undo alone.")
        return
    if options.source is None:
        raise OptionError("marin adopt: got no --from, expected the path of the data, or --undo.")
    if not (options.why or "").strip():
        raise OptionError(
            f"marin adopt: got {options.why!r} as --why, expected a reason, for all who will read the data."
        )


def _one(nodes: Sequence[Node], given: str, key: str | None) -> Node:
    """The one node that is meant, at its key. Raises ConfigError."""
    if len(nodes) != 1:
        names = ", ".join(repr(node.name) for node in nodes)
        raise ConfigError(f"marin adopt takes one step, and {given!r} selects {names}. Give the whole name of one.")
    node = nodes[0]
    if key is not None:
        return node.at(key)
    if node.step.partitions is not None:
        raise ConfigError(
            f"Step {node.name!r} has partitions, each an output of its own. Give one of them: --partition KEY."
        )
    return node


def _adopt(node: Node, store: Store, options: argparse.Namespace) -> int:
    if is_adopted_from(place_of(options.source, store.prefix), store, node.output):
        print_line(f"{node.output.label} is adopted from there already")
        _tell_dagster(node, store, options)
        return 0
    source = find_source(options.source, store, node.output, checksums=options.checksums, report=print_stderr)
    facts, why = facts_of_adopted(node, store, source), options.why.strip()
    adopt(store, node.output, source, facts, why=why, by=user_name() or "unknown", report=print_stderr)
    print_line(f"adopted: {node.output.label} is {source.path} now, {_checked(source)}")
    _tell_dagster(node, store, options)
    return 0


def _checked(source: Source) -> str:
    """The size, and what was compared."""
    count = len(source.manifest.entries)
    size = f"{count} file{'s' * (count != 1)}, {readable_bytes(source.manifest.bytes)}"
    return f"{size}, as {'its' if source.was_checked else 'the new'} manifest says"


def _tell_dagster(node: Node, store: Store, options: argparse.Namespace) -> None:
    """Report the output as `marin sync` does, if an instance exists."""
    if not os.path.isdir(dagster_home()):
        sync = about_step("sync", node, script=None, prefix=options.prefix)
        run_it = to_compute(node, script=options.script, prefix=options.prefix)  # it is complete: nothing is computed
        print_line(f"    $ {sync if options.script is None else run_it}    shows it to Dagster")
        return
    # late, for its weight: Dagster takes a second
    from marin_assets.assets.sync.sync import report_unknown
    from marin_resources.dagster_fixes.databases import open_instance

    ensure_dagster_home()
    if node.key is not None:
        add_keys_of(PartitionRun(nodes=(node,), keys=(node.key,)))
    with open_instance() as instance:
        for reported in report_unknown(instance, [node], store):
            print_line(f"Dagster shows {reported.output.label} as adopted")


def _undo(graph: Graph, node: Node, store: Store, options: argparse.Namespace) -> int:
    adopted = find_adopted(store, node.output)
    readers = made_from(graph, node, store, adopted.path)
    undo(store, node.output, by=user_name() or "unknown", report=print_stderr)
    print_line(f"taken back: {node.output.label} is missing now; the data at {adopted.path} are as they were")
    print_line(f"    $ {to_compute(node, script=options.script, prefix=options.prefix)}")
    if readers:
        print_line(f"made from it: {', '.join(readers)}")
        print_line(
            "    They stay complete. Once the output is computed, a difference of its content shows as their drift; "
            "remove those that must be computed again."
        )
    return 0
