"""The executor's Dagster definition: the steps of a run are coroutines in one process, and Ray computes."""

from __future__ import annotations

from typing import Any, cast

import dagster as dg
from dagster._core.execution.retries import RetryMode
from dagster_async_executor.executor_definition import ASYNC_CONFIG

DEFAULT_MAX_CONCURRENT = 64
"""Steps in flight at once. A waiting step costs a coroutine; Ray limits how many compute."""


@dg.executor(name="marin", config_schema=ASYNC_CONFIG)
def marin_executor(init_context: dg.InitExecutorContext) -> dg.Executor:
    """Runs every step in the run's process."""
    # The late import breaks a weight: anyio and half of Dagster's engine, which definitions do not need.
    from marin_resources.orchestrator.interruptible import InterruptibleExecutor

    config = cast("dict[str, Any]", init_context.executor_config)
    return InterruptibleExecutor(
        retries=RetryMode.from_config(config["retries"]),  # type: ignore[arg-type]
        max_concurrent=config.get("max_concurrent") or DEFAULT_MAX_CONCURRENT,
        tag_concurrency_limits=config.get("tag_concurrency_limits"),
    )
