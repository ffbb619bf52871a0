"""The executor's Dagster definition: the steps of a run wait in one process, and Ray computes."""

from __future__ import annotations

from typing import Any, cast

import dagster as dg

from marin_resources.dagster_fixes.executor.interruption import Interruption
from marin_resources.orchestrator.preflight import refuse_empty_selection, refuse_unmet, resource_of
from marin_resources.orchestrator.ray_tpu_resource import RayTPUResource

DEFAULT_MAX_CONCURRENT = 64
"""Steps in flight at once. A waiting step costs a thread; Ray limits the number of those that compute."""
SHARED = dg.multiprocess_executor.config_schema.config_type.fields  # type: ignore[union-attr]
CONFIG = dg.Field(
    {
        "max_concurrent": dg.Field(
            dg.Noneable(dg.Int),
            default_value=None,
            description=f"The number of steps in flight at once; {DEFAULT_MAX_CONCURRENT} by default.",
        ),
        **{name: SHARED[name] for name in ("tag_concurrency_limits", "retries", "step_dependency_config")},
    }
)


@dg.executor(name="marin", config_schema=CONFIG)
def marin_executor(init_context: dg.InitExecutorContext) -> dg.Executor:
    """Runs every step in the run's process."""
    # The late import breaks a weight: anyio and half of Dagster's engine, which definitions do not need.
    from marin_resources.dagster_fixes.executor.engine import InterruptibleExecutor, RunHooks

    config = cast("dict[str, Any]", init_context.executor_config)
    hooks = RunHooks(before_steps=_before_steps, interrupted=_interrupted)
    return InterruptibleExecutor(config, config.get("max_concurrent") or DEFAULT_MAX_CONCURRENT, hooks)


def _before_steps(context: Any, plan: Any) -> None:
    """Raise an error for a run without steps, and for one that lacks a requirement of its steps."""
    refuse_empty_selection(context.dagster_run)
    refuse_unmet(context, plan)


def _interrupted(context: Any, interruption: Interruption) -> bool:
    """Record the interruption for the steps. Return whether they detach from their compute."""
    ray_tpu = resource_of(context, RayTPUResource)
    if ray_tpu is None:
        return False
    ray_tpu.run_state.interruption = interruption
    return ray_tpu.run_state.should_detach
