"""The job `plan` of the code location: the actions of a run, with reasons, shown on the page of the job's own run.

In:  a selection of steps, by default all.   Out: a table of the groups, the DAG, and where the plan is as a page.
Written: that page, <prefix>/.marin/plans/<run>.html.

It computes the plan and starts nothing.
"""

import logging
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field

from marin_assets.plan.plan import Planned
from marin_assets.plan.render.groups import Group, groups_of
from marin_assets.plan.render.text import describe_total
from marin_resources.orchestrator.links import link_to
from marin_resources.orchestrator.store_resource import StoreResource
from marin_resources.storage.manifest.bytes_progress import readable_bytes
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

if TYPE_CHECKING:
    from marin_assets.plan.plan import Planned
    from marin_assets.step.graph import Node

NAME = "plan"
FOLDER = ".marin/plans"
"""Below the prefix."""
MAX_PICTURE_BYTES = 300_000
"""A larger picture is on the page alone: metadata are stored in Dagster's database."""

log = logging.getLogger(__name__)


SHOWN_GROUPS = 40
SHOWN_STEPS = 4


class PlanConfig(dg.Config):
    selection: list[str] = Field(
        default=[], description="Steps: part of a name, or Dagster's syntax; +A with all inputs of A. Empty: all."
    )
    experiment: str | None = Field(default=None, description="The steps of this experiment alone.")


def plan_jobs(names: Collection[str]) -> list[dg.JobDefinition]:
    """The job; none, and a warning, if one of these jobs has its name."""
    if NAME not in names:
        return [plan_job]
    log.warning(
        "The experiment %r has the name of the job that shows a plan, so that job is left out. Rename the experiment's "
        "file to have both.",
        NAME,
    )
    return []


@dg.op(name="show_plan", out=dg.Out(dg.Nothing), description="What would run, and why.")
def show_plan(context: dg.OpExecutionContext, config: PlanConfig, store: StoreResource) -> None:
    # late, for their weight: every load of the code location imports this module
    from marin_assets.plan.render.page import page_of
    from marin_assets.plan.render.text import summary_of
    from marin_resources.dagster_fixes.run_launcher import process_tag
    from marin_resources.storage.files import write_bytes

    context.instance.add_run_tags(context.run_id, process_tag(context.run_id))  # as the executor of steps does
    try:
        prefix, planned = _planned(context.instance, config, store)
    except MarinError as error:
        raise dg.Failure(str(error), allow_retries=False) from None
    context.log.info(summary_of(planned))
    path = join(prefix, FOLDER, f"{context.run_id}.html")
    write_bytes(path, page_of(planned, prefix, config.experiment or "all steps").encode())
    context.add_output_metadata({**_shown(planned), "page": link_to(path)})


@dg.job(
    name=NAME,
    description="What a run of the selected steps would do, and why. It starts nothing: see the output of `show_plan`.",
    executor_def=dg.in_process_executor,
)
def plan_job() -> None:
    show_plan()


def _planned(instance: dg.DagsterInstance, config: PlanConfig, resource: StoreResource) -> tuple[str, list["Planned"]]:
    from marin_assets.catalog.code_location import select_nodes
    from marin_assets.plan.prepare import prepare_plan
    from marin_assets.step.graph import build_graph

    store = resource.store()
    _, selected = select_nodes(config.selection, config.experiment)
    graph = build_graph([node.step for node in selected])
    outputs = _outputs(instance, [graph[node.step] for node in selected])
    return store.prefix, prepare_plan(graph, store, outputs)


def _outputs(instance: dg.DagsterInstance, nodes: Sequence["Node"]) -> list["Node"]:
    """A node for each output, and for each partition that the sets have now."""
    from marin_assets.plan.partition_runs import runs_of

    now = datetime.now(UTC)
    keys_now = cache(lambda partitions: partitions.keys_now(now, instance.get_dynamic_partitions))
    runs = runs_of(nodes, lambda node: keys_now(node.step.partitions), keys_now)
    return [node for run in runs for node in run.outputs()]


def _shown(planned: Sequence["Planned"]) -> dict[str, Any]:
    """The metadata on the page of the run: the summary, a table of the groups, and the picture if it is small."""
    from base64 import b64encode

    from marin_assets.plan.render.picture import image_of
    from marin_assets.plan.render.text import summary_of

    shown: dict[str, Any] = {"plan": summary_of(planned), "groups": dg.MetadataValue.md(table_of(planned))}
    image = b64encode(image_of(planned).encode()).decode()
    if image and len(image) <= MAX_PICTURE_BYTES:
        shown["picture"] = dg.MetadataValue.md(f"![plan](data:image/svg+xml;base64,{image})")
    return shown


def table_of(planned: Iterable[Planned]) -> str:
    """The table; a sentence for an empty plan."""
    groups = groups_of(planned)
    if not groups:
        return "No steps."
    rows = [_row("action", "outputs", "steps", "reason", "expected"), _row(*["---"] * 5)]
    rows += [_row(*_cells(group)) for group in groups[:SHOWN_GROUPS]]
    more = len(groups) - SHOWN_GROUPS
    return "\n".join([*rows, *([f"\nand {more:,} more groups, on the page"] if more > 0 else [])])


def _cells(group: Group) -> Sequence[str]:
    size = f", {readable_bytes(group.bytes)}" if group.bytes else ""
    more = f" and {len(group.steps) - SHOWN_STEPS:,} more" if len(group.steps) > SHOWN_STEPS else ""
    steps = ", ".join(f"`{name}`" for name in group.steps[:SHOWN_STEPS])
    expected = describe_total(group.total)
    return f"**{group.action}**", f"{len(group.items):,}{size}", steps + more, _text(group.reason), _text(expected)


def _text(text: str) -> str:
    """The text as it is, with Markdown's characters escaped, and its lines in one cell."""
    shown = escape("\n".join(" ".join(line.split()) for line in text.splitlines()), quote=False)
    escaped = "".join(f"\\{character}" if character in r"\`*_[]|" else character for character in shown)
    return escaped.replace("\n", "<br>")


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
