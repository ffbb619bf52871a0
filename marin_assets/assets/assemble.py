"""Experiments to Dagster definitions: assets, a job for each experiment, resources, the executor."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import dagster as dg

from marin_assets.assets.factory import asset_key, build_asset
from marin_assets.plan.experiments_folder import Experiments
from marin_assets.step.graph import build_graph
from marin_resources.orchestrator.console import short_console
from marin_resources.orchestrator.executor import marin_executor
from marin_resources.orchestrator.io_manager import MarinIOManager
from marin_resources.orchestrator.ray_tpu_resource import RayTPUResource
from marin_resources.orchestrator.store_resource import StoreResource

log = logging.getLogger(__name__)


def assemble(experiments: Experiments, sensors: Sequence[dg.SensorDefinition] = ()) -> dg.Definitions:
    """All experiments as one code location. A step that several share is one asset."""
    graph = build_graph([step for steps in experiments.steps.values() for step in steps])
    for sentence in graph.drift:
        log.warning(sentence)
    jobs = []
    for name, steps in experiments.steps.items():
        keys = dict.fromkeys(asset_key(graph[node.step]) for node in build_graph(steps))
        jobs.append(dg.define_asset_job(name, dg.AssetSelection.assets(*keys), description=f"Everything in {name}."))
    return dg.Definitions(
        assets=[build_asset(node, graph) for node in graph],
        jobs=jobs,
        sensors=list(sensors),
        resources=resources(),
        executor=marin_executor,
        loggers={"console": short_console},
        metadata={"left_out": "\n".join(experiments.left_out.values()) or "none"},
    )


def resources(prefix: str = "") -> dict[str, object]:
    """What assets need to run, with the defaults of a laptop."""
    store = StoreResource(prefix=prefix)
    return {"store": store, "io_manager": MarinIOManager(store=store), "ray_tpu": RayTPUResource()}
