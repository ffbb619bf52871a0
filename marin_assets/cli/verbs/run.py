"""Compute what the plan says, and nothing else.

    marin run [EXPERIMENT | SCRIPT.py] [SELECTION …]

Words and options select steps as in `marin plan`; all steps are selected by '*' alone. What is complete is reused and
takes part in no run. The rest is one Dagster run in this process, or one for each set of partitions. `--launch` hands
it to the queue of the deployment. `--plan FILE` runs a saved plan, and refuses if the world has changed since.

Exit code 0: all selected outputs are complete, or handed over. 1: a step or a check failed, or is blocked. 2: wrong
arguments. 130: Ctrl-C.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from marin_assets.plan.empty_prefix import describe_empty_prefix
from marin_assets.plan.plan import Action, Planned
from marin_assets.plan.plan_file import read_plan, require_unchanged
from marin_assets.plan.prepare import prepare_plan
from marin_assets.plan.render.text import lines_of, summary_of
from marin_assets.run.entry_point import add_run_settings, exit_code_of
from marin_assets.run.force import withdraw_forced
from marin_assets.run.options import FailedError, OptionError, prefix_of, require_words
from marin_assets.run.output import print_line, print_stderr
from marin_assets.run.partition_options import lines_of_new_keys
from marin_assets.run.plan_options import Chosen, add_plan_options, choose, request_of, use_request
from marin_assets.run.queued_run import launch
from marin_assets.run.run_plan import Job, carry_out, write_record
from marin_assets.run.writable import refuse_unwritable
from marin_resources.configuration.settings import ensure_dagster_home
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.storage.control.control import refuse_store_without_conditions, require_reachable
from marin_resources.storage.output.notes.job_notes import first_free_attempt
from marin_resources.storage.output.store import Store
from marin_resources.wire.outcome import End


def add_options(parser: argparse.ArgumentParser) -> None:
    add_plan_options(parser)
    add_run_settings(parser)
    parser.add_argument("--plan", metavar="FILE", help="run this saved plan")
    parser.add_argument("--dry-run", "--dry_run", action="store_true", help="print the plan, run nothing")
    parser.add_argument(
        "--inline", action="store_true", help="call the function of the one selected step in this process, to debug it"
    )
    parser.add_argument(
        "--launch", action="store_true", help="hand it to the queue of the deployment, whose daemon runs it"
    )


def run(options: argparse.Namespace) -> int:
    saved = _saved(options)
    _refuse_together(options)
    if saved is None:
        require_words("run", [*options.words, *options.run_only], options.experiment, options.script)
    store = store_at(prefix_of(options))
    refuse_store_without_conditions(store.prefix)
    require_reachable(store.prefix)
    chosen = choose(options, store)
    planned = prepare_plan(
        chosen.graph, store, chosen.outputs, forced=chosen.forced, rerun_failed=options.force_run_failed
    )
    if saved is not None:
        require_unchanged(saved, planned, chosen.graph, store, options.plan)
    if sentence := describe_empty_prefix(planned, store.prefix):
        print_stderr(sentence)
    if options.dry_run:
        for line in (*lines_of_new_keys(chosen.runs), *lines_of(planned)):
            print_line(line)
        return exit_code_of(planned)
    if blocked := [item for item in planned if item.action is Action.BLOCKED]:
        for line in lines_of(blocked):
            print_stderr(line)
        print_stderr("Nothing is run. Fix what blocks, or select other steps.")
        return 1
    refuse_unwritable(planned, store)
    if options.inline:
        return run_inline(chosen, planned, store)
    print_stderr(summary_of(planned))
    return (launch if options.launch else _run_here)(chosen, planned, store, options)


def _run_here(chosen: Chosen, planned: Sequence[Planned], store: Store, options: argparse.Namespace) -> int:
    job = Job(name=chosen.name, graph=chosen.graph, store=store, runs=chosen.runs, of_job=chosen.of_job)
    ensure_dagster_home()
    print_stderr(write_record(job))
    withdraw_forced(planned, store)  # last, when nothing is refused any more
    return carry_out(job, planned, options)


def _refuse_together(options: argparse.Namespace) -> None:
    """Refuse options of which one is of no use beside the other. Raises OptionError."""
    if options.inline and options.launch:
        raise OptionError("marin run: got --inline and --launch, expected one of them.")
    if options.launch and options.force:
        raise OptionError("marin run: got --launch and --force, expected one of them. Force it here, or launch it.")


def _saved(options: argparse.Namespace) -> dict[str, Any] | None:
    """The saved plan, whose options are then those of the command."""
    if options.plan is None:
        return None
    given = {name: value for name, value in request_of(options).items() if value and name != "force_run_failed"}
    if given:
        raise OptionError(
            f"marin run: got --plan and {', '.join(sorted(given))}, expected one of them. A saved plan has its steps."
        )
    saved = read_plan(options.plan)
    use_request(options, saved["request"])
    if options.prefix is None:
        options.prefix = saved["prefix"]
    return saved


def run_inline(chosen: Chosen, planned: Sequence[Planned], store: Store) -> int:
    """Compute the one selected output here. Returns the exit code.

    Raises OptionError unless one output is selected, and FailedError for one that is complete or being computed.
    """
    if len(planned) != 1:
        raise OptionError(
            f"marin run --inline takes one output, and {len(planned)} are selected. Give one name"
            f"{', and --partition KEY' if any(item.node.key for item in planned) else ''}."
        )
    [item] = planned
    node = item.node
    if item.action is not Action.RUN:
        forced = " Pass --force to compute it again." if item.action is Action.REUSE else ""
        raise FailedError(f"{item.label!r} is not computed: {item.reason}.{forced}")
    # late, for their weight: Dagster and the worker take a second
    from marin_assets.assets.body.request import build_task
    from marin_assets.assets.sync.sync import report_reused
    from marin_resources.dagster_fixes.databases import open_instance
    from marin_resources.ray_tpu.worker.inline import run_in_this_process

    ensure_dagster_home()
    withdraw_forced(planned, store)
    path = store.locate(node.output)
    inputs = {label: seen for label, output in node.inputs.items() for seen in [store.look([output])[output]]}
    task = build_task(node, chosen.graph, store, first_free_attempt(path), inputs, None)
    print_stderr(f"{item.label}: computing {path} (attempt {task.attempt}) in this process")
    outcome = run_in_this_process(task)
    if outcome.end is not End.SUCCESS:
        holder = f"it is computed by {outcome.holder.describe()}" if outcome.holder else ""
        raise FailedError(f"Step {item.label!r} failed: {outcome.error or holder or 'another process has it'}")
    done = replace(item, action=Action.REUSE, observed=store.look([node.output])[node.output])
    with open_instance() as instance:
        report_reused(instance, [done], chosen.graph, store, {node.output: done.observed})
    print_line(path)
    return 0
