"""Print what would run, and why. It starts nothing.

    marin plan [EXPERIMENT | SCRIPT.py] [SELECTION …]

For every output: run, reuse, wait or blocked, with its reason to the field, the size of what is reused, and what the
rest is expected to take. A plan of many steps is shown by groups; --all shows each step.

Exit code 0, whatever is to be done; 1 if a control file is damaged, adopted data are gone, `--verify` finds something,
or a step lacks something that it requires.
"""

from __future__ import annotations

import argparse
import json

from marin_assets.plan.empty_prefix import describe_empty_prefix
from marin_assets.plan.lost_data import verified
from marin_assets.plan.plan_file import save_plan
from marin_assets.plan.prepare import EXACT_UP_TO, prepare_plan
from marin_assets.plan.render.json_fields import plan_as_json
from marin_assets.plan.render.page import page_of
from marin_assets.plan.render.text import lines_of
from marin_assets.run.entry_point import exit_code_of
from marin_assets.run.options import prefix_of
from marin_assets.run.output import print_line, print_stderr
from marin_assets.run.partition_options import lines_of_new_keys
from marin_assets.run.plan_options import add_plan_options, choose, request_of
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.storage.control.control import require_reachable
from marin_resources.storage.files import write_bytes


def add_options(parser: argparse.ArgumentParser) -> None:
    add_plan_options(parser)
    parser.add_argument("--all", action="store_true", help="each step by itself, not groups")
    parser.add_argument("--json", action="store_true", help="print one JSON object with all that is known")
    parser.add_argument("--html", metavar="FILE", help="write a page with the plan as a coloured DAG")
    parser.add_argument("--save", metavar="FILE", help="write the plan, for `marin run --plan FILE`")
    parser.add_argument(
        "--verify",
        action="store_true",
        help="read the control files of each output, also of a large plan, and compare its data files by name and size",
    )


def run(options: argparse.Namespace) -> int:
    store = store_at(prefix_of(options))
    require_reachable(store.prefix)
    chosen = choose(options, store)
    for sentence in chosen.graph.drift:
        print_stderr(f"drift: {sentence}")
    outputs = chosen.outputs
    planned = prepare_plan(
        chosen.graph,
        store,
        outputs,
        forced=chosen.forced,
        rerun_failed=options.force_run_failed,
        exact_up_to=len(chosen.graph) + 2 * len(outputs) if options.verify else EXACT_UP_TO,
    )
    planned = verified(planned, store) if options.verify else planned
    if sentence := describe_empty_prefix(planned, store.prefix):
        print_stderr(sentence)
    plan = plan_as_json(planned, store.prefix)
    if options.save:
        save_plan(options.save, plan, request_of(options), planned, chosen.graph, store)
    if options.html:
        write_bytes(options.html, page_of(planned, store.prefix, chosen.name).encode())
    if options.json:
        print_line(json.dumps(plan, indent=2))
    else:
        for line in (*lines_of_new_keys(chosen.runs), *lines_of(planned, one_by_one=options.all)):
            print_line(line)
    for label, path in (("plan", options.save), ("page", options.html)):
        if path:
            print_stderr(f"{label}: {path}")
    return exit_code_of(planned)
