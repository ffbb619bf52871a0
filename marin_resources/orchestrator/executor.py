"""The executor's Dagster definition: the steps of a run wait in one process, and Ray computes."""

from __future__ import annotations

from typing import Any, cast

import dagster as dg

DEFAULT_MAX_CONCURRENT = 64
"""Steps in flight at once. A waiting step costs a thread; Ray limits how many compute."""
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
    from marin_resources.orchestrator.interruptible import InterruptibleExecutor

    config = cast("dict[str, Any]", init_context.executor_config)
    return InterruptibleExecutor(config, max_concurrent=config.get("max_concurrent") or DEFAULT_MAX_CONCURRENT)
