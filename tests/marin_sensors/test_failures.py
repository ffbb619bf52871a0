"""Failures told to a webhook: a real server on loopback, real runs of a real instance."""

from __future__ import annotations

from collections.abc import Callable

import dagster as dg
import pytest
from webhooks import SECRET, Webhook

from marin_sensors import failures as module
from marin_sensors.failures import failures


class Clock:
    def __init__(self, time: Callable[[], float]) -> None:
        self.ahead_s = 0.0
        self._time = time

    def time(self) -> float:
        return self._time() + self.ahead_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    import time

    clock = Clock(time.time)
    monkeypatch.setattr(module, "time", clock)
    return clock


HOLDS = True


@dg.asset(check_specs=[dg.AssetCheckSpec("kept", asset="checked")])
def checked() -> dg.MaterializeResult:
    return dg.MaterializeResult(check_results=[dg.AssetCheckResult(passed=HOLDS, check_name="kept")])


@pytest.fixture
def tick(instance: dg.DagsterInstance, webhook: Webhook, clock: Clock) -> Callable[[], str]:
    """One tick of the sensor, after the first; what it says."""
    sensor = failures(ui="https://dagster.example.org/", per_hour=3)
    repository = dg.Definitions(assets=[checked]).get_repository_def()
    cursor: list[str | None] = [None]

    def tick() -> str:
        context = dg.build_sensor_context(instance=instance, cursor=cursor[0], repository_def=repository)
        skipped = sensor(context)
        cursor[0] = context.cursor
        assert isinstance(skipped, dg.SkipReason)
        return str(skipped.skip_message)

    assert tick() == "It reports what breaks from now on."
    return tick


def fail(instance: dg.DagsterInstance, name: str, sentence: str = "nobody likes it", traceback: str = "") -> str:
    @dg.op(name=name)
    def broken() -> None:
        metadata = {"error": sentence, **({"traceback": dg.MetadataValue.md(traceback)} if traceback else {})}
        raise dg.Failure(sentence, metadata=metadata, allow_retries=False)

    @dg.job(name=f"{name}_job")
    def job() -> None:
        broken()

    return job.execute_in_process(instance=instance, raise_on_error=False).run_id


def test_a_failed_run_is_told_once(tick: Callable[[], str], instance: dg.DagsterInstance, webhook: Webhook) -> None:
    trace = "```\n" + "\n".join(f"line {n}" for n in range(30)) + f"\nhook {webhook.url}\n```"
    run_id = fail(instance, "tokens", "The step 'a<b' failed & stopped.", trace)
    tick()
    [text] = webhook.texts
    assert text.startswith("*A run failed: tokens*\nThe step 'a&lt;b' failed &amp; stopped.\n```\nline 21\n")
    assert "line 20\n" not in text
    assert text.endswith(f"<https://dagster.example.org/runs/{run_id}>")
    assert SECRET not in text
    tick()
    assert len(webhook.texts) == 1


def test_a_plain_op_that_failed_is_told_with_its_cause(
    tick: Callable[[], str], instance: dg.DagsterInstance, webhook: Webhook
) -> None:
    @dg.op
    def count() -> None:
        try:
            {}["rows"]
        except KeyError as error:
            raise ValueError(f"the table has no rows, see {webhook.url}") from error

    @dg.job
    def plain() -> None:
        count()

    assert not plain.execute_in_process(instance=instance, raise_on_error=False).success
    tick()
    [text] = webhook.texts
    assert text.startswith("*A run failed: count*\nValueError: the table has no rows, see ")
    assert "test_failures.py" in text, "where it was raised"
    assert "Error occurred while executing op" not in text
    assert SECRET not in text


def test_a_failure_without_our_metadata_is_told_with_its_sentence(
    tick: Callable[[], str], instance: dg.DagsterInstance, webhook: Webhook
) -> None:
    @dg.op
    def count() -> None:
        raise dg.Failure("The table has no rows.", allow_retries=False)

    @dg.job
    def plain() -> None:
        count()

    plain.execute_in_process(instance=instance, raise_on_error=False)
    tick()
    assert webhook.texts[0].startswith("*A run failed: count*\nThe table has no rows.\n")


def test_a_run_that_failed_outside_of_its_steps_is_told_with_its_cause(
    tick: Callable[[], str], instance: dg.DagsterInstance, webhook: Webhook
) -> None:
    @dg.resource
    def broken(_context: dg.InitResourceContext) -> None:
        raise ValueError("the pool is empty")

    @dg.op(required_resource_keys={"pool"})
    def count() -> None: ...

    @dg.job(resource_defs={"pool": broken})
    def plain() -> None:
        count()

    plain.execute_in_process(instance=instance, raise_on_error=False)
    tick()
    assert "the pool is empty" in webhook.texts[0]


def test_a_run_that_dagster_tries_again_is_not_told(
    tick: Callable[[], str], instance: dg.DagsterInstance, webhook: Webhook, clock: Clock
) -> None:
    for name in ("again", "never"):
        run_id = fail(instance, name)
        instance.add_run_tags(run_id, {"dagster/will_retry": "true"})
        if name == "again":
            instance.add_run_tags(run_id, {"dagster/auto_retry_run_id": "of the next try"})
    tick()
    assert webhook.texts == []
    clock.ahead_s = 600
    tick()
    [text] = webhook.texts
    assert text.startswith("*A run failed: never*"), "the daemon could not launch it again"


def test_what_failed_before_is_not_told(instance: dg.DagsterInstance, webhook: Webhook, clock: Clock) -> None:
    fail(instance, "before")
    clock.ahead_s = 5
    sensor = failures()
    context = dg.build_sensor_context(instance=instance)
    sensor(context)
    again = dg.build_sensor_context(instance=instance, cursor=context.cursor)
    sensor(again)
    assert webhook.texts == []


def test_many_failures_are_one_message(tick: Callable[[], str], instance: dg.DagsterInstance, webhook: Webhook) -> None:
    for number in range(12):
        fail(instance, f"step_{number}", f"sentence {number}")
    tick()
    [text] = webhook.texts
    first, *lines, last = text.splitlines()
    assert first == "*12 things broke*"
    assert len(lines) == 10
    assert "• *A run failed: step_0*: sentence 0 <https://dagster.example.org/runs/" in lines[0]
    assert last == "• and 2 more"


def test_a_webhook_that_is_down_is_tried_again(
    tick: Callable[[], str], instance: dg.DagsterInstance, webhook: Webhook
) -> None:
    webhook.status = 503
    fail(instance, "a")
    for _ in range(3):
        said = tick()
        assert said == "The webhook at '127.0.0.1' answered 503. The message is sent again later."
    webhook.status = 200
    tick()
    assert len(webhook.texts) == 1
    webhook.server.shutdown()
    webhook.server.server_close()
    fail(instance, "b")
    said = tick()
    assert said.startswith("The webhook at '127.0.0.1' did not answer (")
    assert SECRET not in said


def test_an_hour_has_so_many_messages_and_the_rest_comes_as_one(
    tick: Callable[[], str], instance: dg.DagsterInstance, webhook: Webhook, clock: Clock
) -> None:
    for name in "abc":
        fail(instance, name)
        tick()
    for name in "defgh":
        fail(instance, name)
        assert "wait for the next hour" in tick()
    assert len(webhook.texts) == 3
    clock.ahead_s = 3601
    tick()
    assert webhook.texts[3].startswith("*5 things broke*")
    clock.ahead_s = 9000
    tick()
    assert len(webhook.texts) == 4


def test_a_check_that_fails_is_told_each_time_it_is_evaluated(
    tick: Callable[[], str], instance: dg.DagsterInstance, webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    for holds, told in ((True, 0), (False, 1), (True, 1), (False, 2)):
        monkeypatch.setattr(f"{__name__}.HOLDS", holds)
        dg.materialize([checked], instance=instance)
        tick()
        tick()
        assert len(webhook.texts) == told
    assert webhook.texts[0].startswith("*A check does not hold: checked: kept*\n")


def test_without_a_webhook_nothing_is_done(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MARIN_WEBHOOK_URL", raising=False)
    skipped = failures()(dg.build_sensor_context(instance=instance))
    assert "Set MARIN_WEBHOOK_URL to its address." in str(skipped.skip_message)
    monkeypatch.setenv("MARIN_WEBHOOK_URL", "hooks.example.org/x")
    sensor = failures()
    context = dg.build_sensor_context(instance=instance)
    sensor(context)
    fail(instance, "a")
    skipped = sensor(dg.build_sensor_context(instance=instance, cursor=context.cursor))
    assert "The webhook's address is no URL." in str(skipped.skip_message)
