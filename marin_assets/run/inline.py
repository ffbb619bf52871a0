"""`marin run --inline STEP`: call one step's function in this process, under a debugger, and publish its output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from marin_assets.plan.plan import Action, Planned
from marin_assets.run.force import withdraw_forced
from marin_assets.run.options import FailedError, OptionError
from marin_assets.run.output import print_line, print_stderr
from marin_assets.run.plan_options import Chosen
from marin_resources.configuration.settings import ensure_dagster_home
from marin_resources.storage.output.notes.job_notes import first_free_attempt
from marin_resources.storage.output.store import Store
from marin_resources.wire.outcome import End


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
