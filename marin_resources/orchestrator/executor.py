"""The executor as Dagster knows it: steps wait in one process, as coroutines, and the work is on Ray."""

from __future__ import annotations

from typing import Any, cast

import dagster as dg
from dagster._core.execution.retries import RetryMode
from dagster_async_executor.executor_definition import ASYNC_CONFIG

DEFAULT_MAX_CONCURRENT = 64
"""Steps that are looked at, waited for or computed at once. Waiting costs a coroutine; Ray limits the computing."""


@dg.executor(name="marin", config_schema=ASYNC_CONFIG)
def marin_executor(init_context: dg.InitExecutorContext) -> dg.Executor:
    """Runs every step of a run in its one process."""
    # Loaded on first use: the base brings anyio and half of Dagster's engine, which definitions do not need.
    from marin_resources.orchestrator.interruptible import InterruptibleExecutor

    config = cast("dict[str, Any]", init_context.executor_config)
    return InterruptibleExecutor(
        retries=RetryMode.from_config(config["retries"]),  # type: ignore[arg-type]
        max_concurrent=config.get("max_concurrent") or DEFAULT_MAX_CONCURRENT,
        tag_concurrency_limits=config.get("tag_concurrency_limits"),
    )
