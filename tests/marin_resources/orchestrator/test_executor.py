"""What our executor needs of Dagster and dagster-async-executor, and what Dagster's users need of it."""

import asyncio
import os
import signal
import threading
import time

import dagster as dg
import pytest
from running import run_job

from marin_resources.orchestrator.executor import marin_executor


def run(instance: dg.DagsterInstance, *assets: dg.AssetsDefinition, config: dict | None = None):
    definitions = dg.Definitions(
        assets=assets,
        jobs=[dg.define_asset_job("job", "*")],
        executor=marin_executor,
        resources={"io_manager": dg.mem_io_manager},
    )
    return run_job(definitions, "job", instance, config)


def test_assets_wait_at_the_same_time(instance: dg.DagsterInstance) -> None:
    everyone = asyncio.Barrier(10)

    def waiting(i: int) -> dg.AssetsDefinition:
        @dg.asset(name=f"a{i}")
        async def body() -> None:
            await asyncio.wait_for(everyone.wait(), 30)

        return body

    assert run(instance, *(waiting(i) for i in range(10))).success


def test_no_more_than_the_configured_number_run_at_once(instance: dg.DagsterInstance) -> None:
    now, most = [0], [0]

    def counted(i: int) -> dg.AssetsDefinition:
        @dg.asset(name=f"a{i}")
        async def body() -> None:
            now[0] += 1
            most[0] = max(most[0], now[0])
            await asyncio.sleep(0.02)
            now[0] -= 1

        return body

    config = {"execution": {"config": {"max_concurrent": 3}}}
    assert run(instance, *(counted(i) for i in range(9)), config=config).success
    assert most[0] == 3


def test_a_failing_branch_leaves_the_others(instance: dg.DagsterInstance) -> None:
    @dg.asset
    async def bad() -> None:
        raise ValueError("no")

    @dg.asset(deps=[bad])
    async def behind_bad() -> None: ...

    @dg.asset
    async def good() -> None: ...

    @dg.asset(deps=[good])
    async def behind_good() -> None: ...

    result = run(instance, bad, behind_bad, good, behind_good)
    done = {event.asset_key.to_user_string() for event in result.get_asset_materialization_events()}
    assert not result.success
    assert done == {"good", "behind_good"}


def test_a_retry_policy_is_followed(instance: dg.DagsterInstance) -> None:
    tries = []

    @dg.asset(retry_policy=dg.RetryPolicy(max_retries=2, delay=0.1))
    async def third_time_lucky() -> None:
        tries.append(1)
        if len(tries) < 3:
            raise ValueError("not yet")

    assert run(instance, third_time_lucky).success
    assert len(tries) == 3


def test_a_pool_limits_its_assets(instance: dg.DagsterInstance) -> None:
    instance.event_log_storage.set_concurrency_slots("narrow", 1)
    now, most = [0], [0]

    def in_pool(i: int) -> dg.AssetsDefinition:
        @dg.asset(name=f"p{i}", pool="narrow")
        async def body() -> None:
            now[0] += 1
            most[0] = max(most[0], now[0])
            await asyncio.sleep(0.05)
            now[0] -= 1

        return body

    assert run(instance, *(in_pool(i) for i in range(3))).success
    assert most[0] == 1


def test_a_synchronous_asset_and_several_outputs_run(instance: dg.DagsterInstance) -> None:
    @dg.asset
    def plain() -> int:
        return 3

    @dg.multi_asset(outs={"left": dg.AssetOut(), "right": dg.AssetOut()})
    async def both(plain: int):
        return plain, plain + 1

    @dg.asset
    async def total(left: int, right: int) -> None:
        seen.append(left + right)

    seen: list[int] = []
    assert run(instance, plain, both, total).success
    assert seen == [7]


@pytest.mark.parametrize(("number", "says"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")])
def test_a_signal_cancels_the_assets_and_the_run_says_which(
    instance: dg.DagsterInstance, number: int, says: str
) -> None:
    seen = []

    @dg.asset
    async def long() -> None:
        threading.Timer(0.2, os.kill, (os.getpid(), number)).start()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    began = time.monotonic()
    result = run(instance, long)
    assert time.monotonic() - began < 10
    assert seen == ["cancelled"]
    assert not result.success
    told = [event.message for event in result.all_events if "is being stopped" in (event.message or "")]
    assert len(told) == 1
    assert says in told[0]
    assert "long" in told[0]


def test_a_run_that_is_terminated_ends_as_canceled(instance: dg.DagsterInstance) -> None:
    @dg.asset
    async def long(context: dg.AssetExecutionContext) -> None:
        def terminate() -> None:
            instance.report_run_canceling(instance.get_run_by_id(context.run.run_id))
            os.kill(os.getpid(), signal.SIGINT)

        threading.Timer(0.2, terminate).start()
        await asyncio.sleep(60)

    result = run(instance, long)
    told = [event.message for event in result.all_events if "is being stopped" in (event.message or "")]
    assert "Terminated on request" in told[0]
    assert instance.get_run_by_id(result.run_id).status is dg.DagsterRunStatus.CANCELED
