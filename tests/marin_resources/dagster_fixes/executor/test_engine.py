"""What our executor needs of Dagster, and what Dagster's users need of it."""

import asyncio
import os
import signal
import threading
import time

import anyio
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
            await asyncio.sleep(0.2)
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


def test_64_assets_wait_at_the_same_time_by_default(instance: dg.DagsterInstance) -> None:
    assert run(instance, *_meeting(64)).success


@pytest.mark.long
def test_500_assets_wait_at_the_same_time(instance: dg.DagsterInstance) -> None:
    assert run(instance, *_meeting(500), config={"execution": {"config": {"max_concurrent": 500}}}).success


def _meeting(count: int) -> list[dg.AssetsDefinition]:
    """Assets that end when all of them wait."""
    everyone = asyncio.Barrier(count)

    def waiting(i: int) -> dg.AssetsDefinition:
        @dg.asset(name=f"a{i}")
        async def body() -> None:
            await asyncio.wait_for(everyone.wait(), 200)

        return body

    return [waiting(i) for i in range(count)]


def test_a_requested_retry_waits_as_long_as_it_says_while_others_run(instance: dg.DagsterInstance) -> None:
    tries: list[float] = []

    @dg.asset
    async def again() -> None:
        tries.append(time.monotonic())
        if len(tries) < 2:
            raise dg.RetryRequested(max_retries=1, seconds_to_wait=0.5)

    @dg.asset
    async def other() -> None:
        await asyncio.sleep(3)
        seen.append(len(tries))

    seen: list[int] = []
    assert run(instance, again, other).success
    assert tries[1] - tries[0] >= 0.5
    assert seen == [2]


def test_retries_that_are_exhausted_or_disabled_fail_the_step(instance: dg.DagsterInstance) -> None:
    tries: list[int] = []

    @dg.asset(retry_policy=dg.RetryPolicy(max_retries=1))
    async def bad() -> None:
        tries.append(1)
        raise ValueError("no")

    assert not run(instance, bad).success
    assert len(tries) == 2
    assert not run(instance, bad, config={"execution": {"config": {"retries": {"disabled": {}}}}}).success
    assert len(tries) == 3


def test_limits_for_a_tag_hold_within_a_run(instance: dg.DagsterInstance) -> None:
    now, most = [0], [0]

    def tagged(i: int) -> dg.AssetsDefinition:
        @dg.asset(name=f"a{i}", op_tags={"disk": "slow"})
        async def body() -> None:
            now[0] += 1
            most[0] = max(most[0], now[0])
            await asyncio.sleep(0.1)
            now[0] -= 1

        return body

    limit = {"key": "disk", "value": "slow", "limit": 2}
    config = {"execution": {"config": {"tag_concurrency_limits": [limit]}}}
    assert run(instance, *(tagged(i) for i in range(6)), config=config).success
    assert most[0] <= 2


def test_a_step_can_start_when_the_outputs_that_it_reads_exist(instance: dg.DagsterInstance) -> None:
    left_is_read = asyncio.Event()

    @dg.multi_asset(outs={"left": dg.AssetOut(), "right": dg.AssetOut()})
    async def both():
        yield dg.Output(1, "left")
        await asyncio.wait_for(left_is_read.wait(), 60)
        yield dg.Output(2, "right")

    @dg.asset
    async def reader(left: int) -> None:
        left_is_read.set()

    config = {"execution": {"config": {"step_dependency_config": {"require_upstream_step_success": False}}}}
    assert run(instance, both, reader, config=config).success


def test_hooks_follow_their_steps_and_a_failing_one_fails_no_run(instance: dg.DagsterInstance) -> None:
    seen: list[str] = []

    @dg.success_hook
    def note(context: dg.HookContext) -> None:
        seen.append(f"{context.op.name} succeeded")

    @dg.failure_hook
    def note_failure(context: dg.HookContext) -> None:
        seen.append(f"{context.op.name} failed: {context.op_exception}")

    @dg.success_hook
    def broken(context: dg.HookContext) -> None:
        raise ValueError("no hook")

    @dg.asset(hooks={note, broken})
    async def good() -> None: ...

    @dg.asset(hooks={note_failure})
    async def bad() -> None:
        raise ValueError("no")

    result = run(instance, good)
    assert result.success
    assert [event.event_type_value for event in result.all_events if event.is_hook_event].count("HOOK_ERRORED") == 1
    assert not run(instance, bad).success
    assert seen == ["good succeeded", "bad failed: no"]


def test_an_error_of_the_framework_is_the_failure_of_its_step(instance: dg.DagsterInstance) -> None:
    @dg.asset
    async def yields_a_number():
        yield 3

    @dg.asset
    async def exits() -> None:
        raise SystemExit(3)

    @dg.asset
    async def good() -> None: ...

    result = run(instance, yields_a_number, exits, good)
    failures = {event.step_key: event.step_failure_data.error.message for event in result.get_step_failure_events()}
    assert "yielded a value of type <class 'int'>" in failures["yields_a_number"]
    assert "SystemExit: 3" in failures["exits"]
    assert [event.asset_key.to_user_string() for event in result.get_asset_materialization_events()] == ["good"]


def test_checks_dynamic_outputs_and_context_variables_work_as_in_dagsters_own_executors(
    instance: dg.DagsterInstance,
) -> None:
    @dg.asset(check_specs=[dg.AssetCheckSpec("is_small", asset="checked")])
    async def checked() -> dg.MaterializeResult:
        await asyncio.sleep(0)
        assert dg.AssetExecutionContext.get().asset_key == dg.AssetKey("checked")
        return dg.MaterializeResult(check_results=[dg.AssetCheckResult(passed=False, metadata={"size": 3})])

    result = run(instance, checked)
    assert result.success
    assert [check.passed for check in result.get_asset_check_evaluations()] == [False]

    @dg.op(out=dg.DynamicOut())
    async def numbers():
        for i in range(3):
            await asyncio.sleep(0)
            yield dg.DynamicOutput(i, str(i))

    @dg.op
    async def double(number: int) -> int:
        return number * 2

    @dg.op
    def total(numbers: list[int]) -> None:
        seen.append(sum(numbers))

    @dg.job(executor_def=marin_executor, resource_defs={"io_manager": dg.mem_io_manager})
    def dynamic() -> None:
        total(numbers().map(double).collect())

    seen: list[int] = []
    assert run_job(dg.Definitions(jobs=[dynamic]), "dynamic", instance).success
    assert seen == [6]


def test_a_plain_function_may_run_an_event_loop_of_its_own(instance: dg.DagsterInstance) -> None:
    @dg.asset
    def plain() -> None:
        asyncio.run(asyncio.sleep(0))

    assert run(instance, plain).success


@pytest.mark.parametrize("ends", ["success", "failure", "signal"])
def test_resources_are_torn_down_once_after_the_last_step(instance: dg.DagsterInstance, ends: str) -> None:
    seen: list[str] = []

    @dg.resource
    def counted(context):
        seen.append("up")
        yield 1
        seen.append("down")

    def asset(i: int) -> dg.AssetsDefinition:
        @dg.asset(name=f"a{i}", required_resource_keys={"counted"})
        async def body() -> None:
            if ends == "failure":
                raise ValueError("no")
            if ends == "signal" and i == 0:
                threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                await asyncio.sleep(60 if ends == "signal" else 0.01)
            finally:
                seen.append("step")

        return body

    definitions = dg.Definitions(
        assets=[asset(i) for i in range(3)],
        jobs=[dg.define_asset_job("job", "*")],
        executor=marin_executor,
        resources={"counted": counted, "io_manager": dg.mem_io_manager},
    )
    assert run_job(definitions, "job", instance).success is (ends == "success")
    assert (seen[0], seen[-1], seen.count("up"), seen.count("down")) == ("up", "down", 1, 1)


def test_a_second_signal_does_not_cut_the_stop_short(instance: dg.DagsterInstance) -> None:
    stopped = []

    @dg.asset
    async def long() -> None:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            await asyncio.sleep(60)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            with anyio.CancelScope(shield=True):
                await asyncio.sleep(0.2)
                stopped.append("all")

    assert not run(instance, long).success
    assert stopped == ["all"]


def test_a_retry_policy_does_not_try_a_stopped_step_again(instance: dg.DagsterInstance) -> None:
    tries = []

    @dg.asset(retry_policy=dg.RetryPolicy(max_retries=3))
    async def long() -> None:
        tries.append(1)
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        await asyncio.sleep(60)

    result = run(instance, long)
    assert len(tries) == 1
    assert instance.get_run_by_id(result.run_id).status is dg.DagsterRunStatus.FAILURE


def test_a_signal_before_the_first_step_ends_the_run_too(instance: dg.DagsterInstance) -> None:
    @dg.resource
    def interrupted(_) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return 1

    @dg.asset(required_resource_keys={"interrupted"})
    async def long() -> None:
        await asyncio.sleep(200)

    definitions = dg.Definitions(
        assets=[long],
        jobs=[dg.define_asset_job("job", "*")],
        executor=marin_executor,
        resources={"interrupted": interrupted, "io_manager": dg.mem_io_manager},
    )
    assert not run_job(definitions, "job", instance).success
