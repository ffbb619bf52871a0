"""The requirements of nodes' steps on the machine that runs them, and those that it or the cluster does not meet."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from marin_assets.inference.engine import Engine, EngineError, check_engine
from marin_assets.step.graph import Node
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.backend import Backend, missing_requirements
from marin_resources.ray_tpu.cluster.settings import ClusterSettings
from marin_resources.ray_tpu.cluster.settings_from_env import is_on_cluster
from marin_resources.ray_tpu.environment.extras import met_here
from marin_resources.ray_tpu.requirements import MissingByStep, MissingRequirement, Requirements, merge_missing

log = logging.getLogger(__name__)


def requirements_of(node: Node) -> Requirements:
    """The requirements of the node's step."""
    step = node.step
    return Requirements(
        step=node.name,
        extras=tuple(step.extras),
        env=tuple(step.env),
        packages=tuple(step.packages),
        resources=step.resources,
    )


def missing_requirements_of(nodes: Iterable[Node], prefix: str) -> MissingByStep:
    """All missing requirements of the nodes, all of which are to be computed, where they would run now; by step name.
    `prefix`: that of their outputs.

    Raises SettingError for an invalid cluster.
    """
    by_step = {node.name: node for node in nodes}  # of all partitions of a step, one
    on_cluster = is_on_cluster(None)
    missing = {} if on_cluster else merge_missing(_missing_engines(by_step), _missing_things(by_step))
    required = [requirements for requirements in map(requirements_of, by_step.values()) if not requirements.plain]
    if not on_cluster:
        required = [requirements for requirements in required if not met_here(requirements)]
    if not required:
        return missing
    backend = _backend(prefix) if on_cluster else _local_backend()
    try:
        return merge_missing(missing_requirements(backend, required, lambda names: ()), missing)
    finally:
        backend.shutdown()


def _missing_engines(by_step: Mapping[str, Node]) -> MissingByStep:
    """The steps whose models run on an engine that this machine does not have. A cluster's workers check themselves."""
    engines = {name: getattr(node.step.config, "engine", None) for name, node in by_step.items()}
    requested = {name: unwrap_versioned_value(engine) for name, engine in engines.items() if isinstance(engine, Engine)}
    kinds = {engine.kind: engine for engine in requested.values()}  # a look starts a Python
    lacking = {
        kind: requirement for kind, engine in kinds.items() if (requirement := _missing_engine(engine)) is not None
    }
    return {name: (lacking[engine.kind],) for name, engine in requested.items() if engine.kind in lacking}


def _missing_engine(engine: Engine) -> MissingRequirement | None:
    try:
        check_engine(engine)
    except EngineError as error:
        requirement = f"the engine {engine.kind!r}, which this machine does not have"
        return MissingRequirement(verb="needs", what=requirement, remedy=str(error))
    return None


def _missing_things(by_step: Mapping[str, Node]) -> MissingByStep:
    """The steps whose configs need a program or a file that this machine does not have. One look for equal needs."""
    configs = {name: node.step.config for name, node in by_step.items() if hasattr(node.step.config, "needs_here")}
    needs = {name: (type(config), config.needs_here()) for name, config in configs.items()}
    missing: dict[Any, tuple[MissingRequirement, ...]] = {}
    for name, config in configs.items():
        if needs[name] not in missing:
            pairs = config.missing_here()
            missing[needs[name]] = tuple(MissingRequirement(verb="needs", what=need, remedy=fix) for need, fix in pairs)
    return {name: missing[need] for name, need in needs.items() if missing[need]}


def _local_backend() -> Backend:
    """The late import breaks a weight, here and below: most plans lack nothing."""
    from marin_resources.ray_tpu.local.backend import LocalBackend

    return LocalBackend()


def _backend(prefix: str) -> Backend:
    """The back end of the cluster, or of the fleet."""
    from marin_resources.ray_tpu.cluster.backend import ClusterBackend
    from marin_resources.ray_tpu.fleet.backend import backend_at

    def backend_of(settings: ClusterSettings) -> ClusterBackend:
        return ClusterBackend(settings, run_id=None, report=log.warning)

    return backend_at(None, prefix, backend_of)
