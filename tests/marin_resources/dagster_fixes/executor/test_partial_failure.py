"""A step of which some partitions are complete holds up no step below it; the run fails."""

from __future__ import annotations

import dagster as dg
import pytest
from running import run_job

from marin_resources.dagster_fixes.executor.partial_failure import partial_failure_metadata
from marin_resources.orchestrator.executor import marin_executor


@pytest.mark.parametrize(
    ("metadata", "runs"), [(partial_failure_metadata(2), True), ({}, False)], ids=["partial", "whole"]
)
def test_the_steps_below_continue_after_a_partial_failure(
    instance: dg.DagsterInstance, metadata: dict[str, dg.MetadataValue], runs: bool
) -> None:
    below: list[str] = []

    @dg.asset
    async def above() -> None:
        raise dg.Failure("1 of 3 partitions failed", metadata=metadata, allow_retries=False)

    @dg.asset(deps=[above])
    async def reader() -> None:
        below.append("reader")

    jobs = [dg.define_asset_job("job", "*")]
    result = run_job(dg.Definitions(assets=[above, reader], jobs=jobs, executor=marin_executor), "job", instance)
    assert not result.success
    assert below == (["reader"] if runs else [])
