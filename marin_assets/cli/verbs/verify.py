"""Compare the files of complete outputs with their manifests.

Names, sizes and checksums of all files are compared. The checksum is the store's own of the current object; on a disk
it is computed from the bytes. A table of ids has checksums of its own. Each wrong output is printed with the step to
rerun.

Exit code 0: everything that was asked for was compared, without a finding. 1: findings. 2: wrong arguments, or no
selected output is complete. 3: no finding, and an output could not be verified, or not wholly.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from marin_assets.catalog.code_location import select_nodes
from marin_assets.cli.render.verify_report import State, VerifyReport, exit_code, lines_of, summary_of, to_json
from marin_assets.documents.document import DocumentError
from marin_assets.documents.frames.id_table import NAME as TABLE
from marin_assets.documents.frames.id_table import open_id_table
from marin_assets.plan.partitions import with_partitions
from marin_assets.run.options import OptionError, add_prefix, add_script, add_selection, prefix_of, share
from marin_assets.run.output import print_line, print_stderr
from marin_assets.step.graph import Graph, Node
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.storage.control.control import require_reachable
from marin_resources.storage.output.store import Store
from marin_resources.storage.output.verification import Finding, Problem, Verification
from marin_resources.storage.output.verify import find_lost_statuses, verify_outputs
from marin_resources.types.output import Observed

TABLES_AT_ONCE = 16


def add_options(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    add_prefix(parser)
    add_script(parser)
    parser.add_argument("--sample", type=share, default=1.0, metavar="P", help="share of files whose bytes are read")
    parser.add_argument("--seed", type=int, metavar="N", help="selects the files of a sample (default: random)")
    parser.add_argument("--read", action="store_true", help="read the bytes also where the store has a checksum")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    store = store_at(prefix_of(options))
    if options.seed is None:
        options.seed = random.randrange(1_000_000)
    require_reachable(store.prefix)
    graph, nodes = select_nodes(options.selection, options.experiment, options.script)
    verified = verify_nodes(graph, nodes, store, sample=options.sample, seed=options.seed, read=options.read)
    if all(report.state is State.NOT_THERE for report in verified):
        raise OptionError(
            f"None of the {len(verified)} selected outputs is complete at the prefix {store.prefix!r}. "
            "Give another --prefix, or compute them first."
        )
    _print_results(verified, store, options)
    return exit_code(verified)


def verify_nodes(
    graph: Graph, nodes: Sequence[Node], store: Store, *, sample: float, seed: int, read: bool
) -> list[VerifyReport]:
    """Verify the complete outputs of the nodes. A damaged control file is a finding of its output alone."""
    nodes = with_partitions(store, nodes)
    looked = store.look(node.output for node in nodes)
    lost = find_lost_statuses(
        observed.path for observed in looked.values() if observed.status is None and not observed.damage
    )
    complete = [observed.path for observed in looked.values() if observed.done]
    complete += [path for path, finding in lost.items() if finding.problem is Problem.DAMAGED]
    verifications = verify_outputs(complete, sample=sample, seed=seed, read=read, report=print_stderr)
    for path, finding in _damaged_tables(looked.values(), is_whole=sample == 1).items():
        verifications[path] = verifications[path].with_finding(finding)
    findings = {observed.path: _unreadable(observed.damage) for observed in looked.values() if observed.damage} | lost
    for path, finding in findings.items():
        verifications[path] = verifications.get(path, Verification(path=path)).with_finding(finding)
    verified = []
    for node in nodes:
        observed = looked[node.output]
        verification = verifications.get(observed.path)
        readers = _readers(store, graph, node) if verification and not verification.data_ok else []
        verified.append(
            VerifyReport(
                node=node,
                path=observed.path,
                status=observed.status,
                verification=verification,
                adopted=observed.adopted is not None,
                readers=tuple(readers),
            )
        )
    return verified


def _damaged_tables(looked: Iterable[Observed], *, is_whole: bool) -> dict[str, Finding]:
    """The damaged tables of ids of complete outputs, by their paths. `is_whole`: their blocks are read too."""

    def damage(observed: Observed) -> str:
        try:
            table = open_id_table(observed.record.data_path or observed.path)
            if table is not None and is_whole:
                table.verify_blocks()
        except DocumentError as error:
            return str(error)
        return ""

    complete = [observed for observed in looked if observed.done]
    with ThreadPoolExecutor(TABLES_AT_ONCE) as pool:
        damages = zip(complete, pool.map(damage, complete), strict=True)
    return {
        observed.path: Finding(name=TABLE, problem=Problem.DAMAGED, expected="a table of ids", found=sentence)
        for observed, sentence in damages
        if sentence
    }


def _unreadable(damage: str) -> Finding:
    return Finding(name="", problem=Problem.UNREADABLE, expected="control files", found=damage)


def _readers(store: Store, graph: Graph, node: Node) -> list[str]:
    """The labels of the complete outputs that read the node's, directly or through others."""
    below = with_partitions(store, graph.downstream(graph[node.step]))
    reached = {node.output, graph[node.step].output}  # a snapshot reads the folder of a step's partitions
    readers = []
    for other in below:
        read = [*other.inputs.values(), *(source.output for source in other.pseudo_dependencies)]
        if not reached.isdisjoint(read):
            readers.append(other)
            reached |= {other.output, graph[other.step].output}
    looked = store.look(reader.output for reader in readers)
    return [reader.output.label for reader in readers if looked[reader.output].done]


def _print_results(verified: Sequence[VerifyReport], store: Store, options: argparse.Namespace) -> None:
    settings = {"prefix": store.prefix, "sample": options.sample, "seed": options.seed, "read": options.read}
    if options.json:
        print_line(json.dumps({**settings, **to_json(verified)}, indent=2))
        return
    for line in lines_of(verified, store.prefix, options.script):
        print_line(line)
    sampled = f", --sample {options.sample} --seed {options.seed}" if options.sample < 1 else ""
    print_line(summary_of(verified, sampled))
