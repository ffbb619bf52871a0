"""Experiments to Dagster definitions: assets, a job for each experiment, resources, the executor."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dagster as dg

from marin_assets.assets.factory import asset_key, build_assets
from marin_assets.assets.load_errors import VALIDATION_VARIABLE, LeftOutError, assets_of_left_out
from marin_assets.assets.plan_job import plan_jobs
from marin_assets.catalog.description import stage_of
from marin_assets.catalog.experiments_folder import Experiments
from marin_assets.step.graph import Graph, Node, build_graph
from marin_assets.step.partitions.sets import Partitions
from marin_resources.dagster_fixes.console import short_console
from marin_resources.orchestrator.executor import marin_executor
from marin_resources.orchestrator.io_manager import MarinIOManager
from marin_resources.orchestrator.ray_tpu_resource import RayTPUResource
from marin_resources.orchestrator.store_resource import StoreResource

log = logging.getLogger(__name__)

STAGE = "stage_"
"""The names of the jobs of stages begin so."""


def assemble(
    experiments: Experiments,
    sensors: Sequence[dg.SensorDefinition] = (),
    schedules: Sequence[dg.ScheduleDefinition] = (),
    sensors_left_out: Mapping[str, str] | None = None,
    assets: Sequence[dg.AssetsDefinition] = (),
    *,
    graph: Graph | None = None,
) -> dg.Definitions:
    """All experiments as one code location, with a job for each. A step that several experiments share is one asset.

    Each stage has a job too, `stage_tokenize`, of all that its functions compute; and `plan` shows what would run.

    `sensors_left_out`: file of sensors -> why it is left out. `assets`: those that are no steps. `graph`: what
    `graph_of` has returned, if that is known. Raises LeftOutError if an experiment or such a file is left out and
    Dagster validates the definitions.
    """
    left_out = {**experiments.left_out, **{f"sensors_{name}": why for name, why in (sensors_left_out or {}).items()}}
    if left_out and os.environ.get(VALIDATION_VARIABLE):
        raise LeftOutError("\n".join(left_out.values()))
    graph = graph_of(experiments) if graph is None else graph
    for sentence in graph.drift:
        log.warning(sentence)
    experiment_jobs = (
        jobs_of(name, [graph[node.step] for node in build_graph(steps)]) for name, steps in experiments.steps.items()
    )
    jobs = {**_stage_jobs(graph), **{name: nodes for jobs in experiment_jobs for name, nodes in jobs.items()}}
    specs, checks = assets_of_left_out(left_out)
    return definitions_of(
        graph,
        jobs,
        titles=experiments.titles,
        beside=[*specs, *assets],
        jobs_beside=plan_jobs(jobs),
        asset_checks=checks,
        sensors=list(sensors),
        schedules=list(schedules),
        metadata={"left_out": "\n".join(left_out.values()) or "none"},
    )


def graph_of(experiments: Experiments) -> Graph:
    """The graph of the steps of all experiments."""
    return build_graph([step for steps in experiments.steps.values() for step in steps])


def _stage_jobs(graph: Graph) -> dict[str, list[Node]]:
    by_stage: dict[str, list[Node]] = {}
    for node in graph:
        if (stage := stage_of(node.step)) is not None:
            by_stage.setdefault(f"{STAGE}{stage}", []).append(node)
    return {name: members for stage, nodes in by_stage.items() for name, members in jobs_of(stage, nodes).items()}


def jobs_of(name: str, nodes: Iterable[Node]) -> dict[str, list[Node]]:
    """The jobs of an experiment, by name: one, or several if its steps have different sets of partitions.

    A job of Dagster's has one set. Then the job `name` has the steps without partitions, and `name__deliveries` those
    of dynamic("deliveries").
    """
    by_set: dict[Partitions | None, list[Node]] = {}
    for node in nodes:
        by_set.setdefault(node.step.partitions, []).append(node)
    if len(by_set.keys() - {None}) < 2:
        return {name: [node for members in by_set.values() for node in members]}
    jobs: dict[str, list[Node]] = {}
    for partitions, members in by_set.items():
        own = name if partitions is None else "__".join((name, re.sub(r"\W", "_", partitions.label)))
        same = sum(other == own or other.startswith(f"{own}_set") for other in jobs)
        jobs[f"{own}_set{same + 1}" if same else own] = members
    return jobs


def definitions_of(
    graph: Graph,
    jobs: Mapping[str, Iterable[Node]],
    *,
    titles: Mapping[str, str] | None = None,
    beside: Iterable[dg.AssetSpec | dg.AssetsDefinition] = (),
    jobs_beside: Iterable[dg.JobDefinition] = (),
    **others: Any,
) -> dg.Definitions:
    """Dagster's definitions of a graph: its assets and those `beside` it, a job for each selection of nodes, resources
    and the executor. `titles`: experiment -> the title of its file, which describes its jobs."""
    return dg.Definitions(
        assets=[*build_assets(graph), *beside],
        jobs=[*(_job(name, nodes, titles or {}) for name, nodes in jobs.items()), *jobs_beside],
        resources=resources(),
        executor=marin_executor,
        loggers={"console": short_console},
        **others,
    )


def resources(prefix: str = "") -> dict[str, object]:
    """The resources that assets need, with the defaults of a laptop."""
    store = StoreResource(prefix=prefix)
    return {"store": store, "io_manager": MarinIOManager(store=store), "ray_tpu": RayTPUResource()}


def _job(name: str, nodes: Iterable[Node], titles: Mapping[str, str]) -> Any:
    keys = dict.fromkeys(asset_key(node) for node in nodes)
    return dg.define_asset_job(name, dg.AssetSelection.assets(*keys), description=_described(name, titles))


def _described(job: str, titles: Mapping[str, str]) -> str:
    experiment, _, partitions = job.partition("__")
    if experiment in titles:
        return titles[experiment] + (f" The steps with the partitions of {partitions}." if partitions else "")
    stage = job.removeprefix(STAGE)
    return f"Everything that the stage {stage} makes." if stage != job else f"Everything in {job}."
