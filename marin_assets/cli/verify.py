"""Compare the files of complete outputs with their manifests.

Names, sizes and checksums of all files are compared. The checksum is the store's own of the current object; on a disk
it is computed from the bytes. Each wrong output is printed with the step to rerun.

Exit code 0: no finding. 1: findings. 2: wrong arguments, or no selected output is complete.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence

from marin_assets.cli.options import OptionError, add_prefix, add_selection, prefix_of, share
from marin_assets.cli.output import print_line, print_stderr
from marin_assets.cli.verified import State, Verified, lines_of, summary_of, to_json
from marin_assets.plan.code_location import select_nodes
from marin_assets.step.graph import Graph, Node
from marin_resources.output import Observed
from marin_resources.storage.control.control import require_reachable
from marin_resources.storage.manifest.largest_first import map_largest_first
from marin_resources.storage.output.store import LOOK_THREADS, UNREADABLE, Store
from marin_resources.storage.output.verification import Finding, Problem, Verification
from marin_resources.storage.output.verify import verify_outputs


def add_options(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    add_prefix(parser)
    parser.add_argument("--sample", type=share, default=1.0, metavar="P", help="share of files whose bytes are read")
    parser.add_argument("--seed", type=int, metavar="N", help="selects the files of a sample (default: random)")
    parser.add_argument("--read", action="store_true", help="read the bytes also where the store has a checksum")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    store = Store(prefix_of(options))
    if options.seed is None:
        options.seed = random.randrange(1_000_000)
    require_reachable(store.prefix)
    graph, nodes = select_nodes(options.selection, options.experiment)
    verified = verify_nodes(graph, nodes, store, sample=options.sample, seed=options.seed, read=options.read)
    if all(each.state is State.NOT_THERE for each in verified):
        raise OptionError(
            f"None of the {len(verified)} selected outputs is complete at the prefix {store.prefix!r}. "
            "Give another --prefix, or compute them first."
        )
    _print_results(verified, store, options)
    return 1 if any(each.state is State.WRONG for each in verified) else 0


def verify_nodes(
    graph: Graph, nodes: Sequence[Node], store: Store, *, sample: float, seed: int, read: bool
) -> list[Verified]:
    """Verify the complete outputs of the nodes."""
    seen = dict(zip(nodes, _look(store, nodes), strict=True))
    complete = [found.path for found in seen.values() if isinstance(found, Observed) and found.done]
    verdicts = verify_outputs(complete, sample=sample, seed=seed, read=read, report=print_stderr)
    verified = []
    for node, found in seen.items():
        verdict = found if isinstance(found, Verification) else verdicts.get(found.path)
        status = found.status if isinstance(found, Observed) else None
        readers = _complete(store, graph.downstream(node)) if verdict and not verdict.ok else []
        path = store.locate(node.output)
        verified.append(Verified(node=node, path=path, status=status, verdict=verdict, readers=tuple(readers)))
    return verified


def _look(store: Store, nodes: Sequence[Node]) -> list[Observed | Verification]:
    return map_largest_first(
        lambda node: _look_at(store, node), nodes, size=lambda _: 0, threads=min(LOOK_THREADS, len(nodes) or 1)
    )


def _look_at(store: Store, node: Node) -> Observed | Verification:
    """Look at one output. An unreadable control file is a finding of this output, and does not affect the others."""
    output = node.output
    try:
        return store.look([output])[output]
    except UNREADABLE as error:
        finding = Finding(name="", problem=Problem.UNREADABLE, expected="control files", found=str(error))
        return Verification(path=store.locate(output), findings=(finding,))


def _complete(store: Store, nodes: Sequence[Node]) -> list[str]:
    seen = zip(nodes, _look(store, nodes), strict=True)
    return [node.name for node, found in seen if isinstance(found, Observed) and found.done]


def _print_results(verified: Sequence[Verified], store: Store, options: argparse.Namespace) -> None:
    settings = {"prefix": store.prefix, "sample": options.sample, "seed": options.seed, "read": options.read}
    if options.json:
        print_line(json.dumps({**settings, **to_json(verified)}, indent=2))
        return
    for line in lines_of(verified, store.prefix):
        print_line(line)
    sampled = f", --sample {options.sample} --seed {options.seed}" if options.sample < 1 else ""
    print_line(summary_of(verified, sampled))
