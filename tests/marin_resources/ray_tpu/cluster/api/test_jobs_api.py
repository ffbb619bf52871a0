"""The jobs of a real cluster over HTTP, with networks that fail."""

from __future__ import annotations

import asyncio
import dataclasses
import io
import os
import re
import subprocess
import sys
import time
import uuid
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from flaky_proxy import FlakyProxy
from one_sentence import one_sentence
from ray_cluster import Cluster

from marin_resources.ray_tpu.cluster.api.jobs_api import (
    ApiError,
    JobExistsError,
    JobInfo,
    JobsApi,
    JobStatus,
    NoSuchJobError,
    RefusedError,
    UnreachableError,
    connect,
)
from marin_resources.ray_tpu.cluster.api.responses import ApiRequest
from marin_resources.ray_tpu.cluster.api.token import Token, TokenError

NO_ONE = "0123456789abcdef" * 4
"""A token that no cluster has."""
WEBSOCKET = ApiRequest(action="Following a log", method="GET", path="/api/jobs/any/logs/tail")


def run(work: Callable[[JobsApi], Awaitable[Any]], cluster: Cluster, address: str | None = None) -> Any:
    """Return the result of `work` with a connection to the cluster."""

    async def talk() -> Any:
        async with connect(cluster.settings(address=address)) as api:
            return await work(api)

    return asyncio.run(talk())


def new_id() -> str:
    return f"job-{uuid.uuid4().hex[:8]}"


async def submit(api: JobsApi, entrypoint: str, job: str | None = None, **more: Any) -> str:
    job = job or new_id()
    given = {"runtime_env": {}, "metadata": {}, "num_cpus": 0, "memory_bytes": None, **more}
    await api.submit(submission_id=job, entrypoint=entrypoint, **given)
    return job


async def ended(api: JobsApi, job: str) -> JobInfo:
    return await until(api, job, lambda info: info.status.is_terminal)


async def until(api: JobsApi, job: str, so: Callable[[JobInfo], bool]) -> JobInfo:
    async with asyncio.timeout(60):
        while not so(info := await api.info(job)):
            await asyncio.sleep(0.1)
        return info


@asynccontextmanager
async def running(api: JobsApi, entrypoint: str) -> AsyncIterator[str]:
    """A running job, stopped at the end of the block."""
    job = await submit(api, entrypoint)
    await until(api, job, lambda info: info.status is JobStatus.RUNNING)
    try:
        yield job
    finally:
        await api.stop(job)


def own_lines(log: str) -> list[str]:
    """The lines without Ray's own, which may come late, among the job's."""
    rays = ("Runtime env is setting up.", "Running entrypoint for job ")
    return [line for line in log.splitlines() if not any(each in line for each in rays)]


def test_the_version_names_ray_and_which_head_it_is(cluster: Cluster) -> None:
    version = run(lambda api: api.version(), cluster)
    assert version.ray_version.startswith("2.")
    assert version.session == os.path.basename(os.path.realpath(f"{cluster.temp_dir}/session_latest"))


def test_a_job_runs_and_ends_and_is_described(cluster: Cluster) -> None:
    async def work(api: JobsApi) -> None:
        before = time.time()
        job = await submit(api, "echo one; echo two", metadata={"marin/step": "x"}, num_cpus=1, memory_bytes=1_000_000)
        info = await ended(api, job)
        assert (info.submission_id, info.status, info.exit_code) == (job, JobStatus.SUCCEEDED, 0)
        assert (info.metadata, info.entrypoint) == ({"marin/step": "x"}, "echo one; echo two")
        assert before - 5 < (info.submitted_at_s or 0) <= (info.ended_at_s or 0) < time.time() + 5
        assert info.node_id is not None
        assert own_lines(await api.logs(job)) == ["one", "two"]
        assert job in [each.submission_id for each in await api.list()]

    run(work, cluster)


def test_a_job_that_fails_reports_its_code_and_the_end_of_its_log(cluster: Cluster) -> None:
    async def work(api: JobsApi) -> None:
        info = await ended(api, await submit(api, "echo this went wrong; exit 7"))
        assert (info.status, info.exit_code) == (JobStatus.FAILED, 7)
        assert "this went wrong" in info.message
        assert info.error_type is not None

    run(work, cluster)


def test_an_id_is_taken_once(cluster: Cluster) -> None:
    async def work(api: JobsApi) -> None:
        job = await submit(api, "true")
        with pytest.raises(JobExistsError, match=job) as error:
            await submit(api, "true", job)
        one_sentence(error)

    run(work, cluster)


def test_of_two_that_submit_one_id_at_once_one_succeeds(cluster: Cluster) -> None:
    async def work(api: JobsApi) -> list[Any]:
        job = new_id()
        return await asyncio.gather(*(submit(api, "true", job) for _ in range(4)), return_exceptions=True)

    results = run(work, cluster)
    assert sorted(type(each).__name__ for each in results) == ["JobExistsError"] * 3 + ["str"]


def test_a_job_that_nobody_knows_is_reported_whatever_is_asked_of_it(cluster: Cluster) -> None:
    async def tail(api: JobsApi) -> None:
        async for _ in api.tail("none"):
            pass

    calls = [lambda api: api.info("none"), lambda api: api.stop("none"), lambda api: api.delete("none")]
    for call in [*calls, lambda api: api.logs("none"), tail]:
        with pytest.raises(NoSuchJobError, match="'none'") as error:
            run(call, cluster)
        one_sentence(error)


def test_what_ray_does_not_understand_is_one_sentence(cluster: Cluster) -> None:
    for wrong in ({"metadata": {"a": 1}}, {"num_cpus": "many"}):
        with pytest.raises(ApiError, match=r"answered 400 \(TypeError: ") as error:
            run(lambda api, wrong=wrong: submit(api, "true", **wrong), cluster)
        one_sentence(error)


@pytest.mark.long
def test_a_job_is_stopped_once_and_forgotten_when_it_has_ended(cluster: Cluster) -> None:
    async def work(api: JobsApi) -> None:
        async with running(api, "sleep 600") as job:
            with pytest.raises(ApiError, match="non-terminal state") as error:
                await api.delete(job)
            one_sentence(error)
            assert await api.stop(job)
            assert (await ended(api, job)).status is JobStatus.STOPPED
            while await api.stop(job):  # as long as the job's supervisor lives, a moment longer than the job
                await asyncio.sleep(0.1)
        assert await api.delete(job)
        with pytest.raises(NoSuchJobError):
            await api.info(job)

    run(work, cluster)


@pytest.mark.long
def test_the_log_is_followed_to_its_last_line_for_longer_than_a_request_may_take(cluster: Cluster) -> None:
    entrypoint = "echo first; sleep 5; python -c 'print(\"long\" * 30_000)'; printf end"

    async def work(direct: JobsApi) -> str:
        async with JobsApi(cluster.address, token(cluster), timeout_s=3) as api:
            job = await submit(direct, entrypoint)
            return "".join([text async for text in api.tail(job)])

    assert own_lines(run(work, cluster)) == ["first", "long" * 30_000, "end"]


@pytest.mark.long
@pytest.mark.parametrize("trouble", ["cut", "freeze"])
def test_a_log_that_is_cut_short_is_no_end(trouble: str, cluster: Cluster) -> None:
    async def follow(api: JobsApi, job: str, hurt: Callable[[], None]) -> None:
        async for text in api.tail(job):
            if "tick" in text:
                hurt()

    async def work(direct: JobsApi) -> None:
        async with running(direct, "while true; do echo tick; sleep 0.1; done") as job:
            with FlakyProxy(cluster.address) as proxy:
                async with JobsApi(proxy.address, token(cluster), timeout_s=2) as api:
                    with pytest.raises(UnreachableError) as error:
                        await follow(api, job, getattr(proxy, trouble))
                    one_sentence(error)

    run(work, cluster)


@pytest.mark.long
def test_a_package_is_uploaded_once_and_jobs_run_in_it(cluster: Cluster) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("hello.txt", "hello from the package\n")
    uri = f"gcs://_ray_pkg_{uuid.uuid4().hex}.zip"

    async def work(api: JobsApi) -> str:
        assert not await api.has_package(uri)
        await api.upload_package(uri, packed.getvalue())
        assert await api.has_package(uri)
        job = await submit(api, "cat hello.txt", runtime_env={"working_dir": uri})
        await ended(api, job)
        return await api.logs(job)

    assert "hello from the package" in run(work, cluster)


def test_nodes_tell_what_they_have(cluster: Cluster) -> None:
    (node,) = run(lambda api: api.node_resources(), cluster)
    assert node["CPU"] == 2
    assert node["memory"] > 1e8


def test_without_a_token_one_sentence_reports_where_to_put_it(cluster: Cluster) -> None:
    async def work() -> None:
        async with JobsApi(cluster.address, None) as api:
            await api.list()

    with pytest.raises(RefusedError, match=r"requires a token \(401\), and none was sent") as error:
        asyncio.run(work())
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH", "RAY_AUTH_TOKEN"):
        assert name in one_sentence(error)


def test_with_a_wrong_token_one_sentence_reports_where_it_came_from(cluster: Cluster) -> None:
    async def work() -> None:
        async with JobsApi(cluster.address, Token(NO_ONE, "RAY_AUTH_TOKEN")) as api:
            await submit(api, "true")

    with pytest.raises(RefusedError, match=r"rejects the token from RAY_AUTH_TOKEN \(403\)") as error:
        asyncio.run(work())
    assert NO_ONE not in one_sentence(error)


def test_a_token_that_cannot_be_found_is_reported_when_the_conversation_begins(
    cluster: Cluster, tmp_path: Path
) -> None:
    settings = dataclasses.replace(cluster.settings(), token_path=str(tmp_path / "none"))

    async def work() -> None:
        async with connect(settings):
            pass

    with pytest.raises(TokenError, match="cannot be read"):
        asyncio.run(work())


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        (lambda proxy: proxy.cut(), "cannot be connected to"),
        (lambda proxy: proxy.freeze(), "did not answer within 2 s"),
        (lambda proxy: proxy.fail(502), r"answered 502\.$"),
        (lambda proxy: proxy.fail(503), r"answered 503\.$"),
    ],
    ids=["cut", "freeze", "502", "503"],
)
def test_what_may_pass_is_distinguished_from_what_will_not(
    trouble: Callable[[FlakyProxy], None], told: str, cluster: Cluster
) -> None:
    async def work() -> None:
        with FlakyProxy(cluster.address) as proxy:
            async with JobsApi(proxy.address, token(cluster), timeout_s=2) as api:
                await api.version()
                trouble(proxy)
                began = time.monotonic()
                calls = [api.version(), api.list(), api.info("any"), submit(api, "true")]
                errors = await asyncio.gather(*calls, return_exceptions=True)
                assert time.monotonic() - began < 5
                for error in errors:
                    assert isinstance(error, UnreachableError)
                    assert re.search(told, one_sentence(error))
                    assert proxy.address in str(error)
                proxy.mend()
                await api.version()

    asyncio.run(work())


@pytest.mark.long
def test_a_dashboard_that_hangs_is_not_waited_for_beyond_the_timeout(cluster: Cluster) -> None:
    async def work() -> None:
        async with JobsApi(cluster.address, token(cluster), timeout_s=2) as api:
            await api.version()
            cluster.freeze_dashboard()
            try:
                with pytest.raises(UnreachableError, match="did not answer within 2 s"):
                    await api.version()
            finally:
                cluster.thaw()
            await api.version()

    asyncio.run(work())


def test_no_error_holds_the_token_anywhere(cluster: Cluster) -> None:
    """Error reporters read causes, contexts and attributes too."""
    value = Path(cluster.token_path).read_text()

    async def work() -> list[BaseException]:
        errors: list[BaseException] = []
        with FlakyProxy(cluster.address) as proxy:
            async with JobsApi(proxy.address, token(cluster), timeout_s=0.5) as api:
                for trouble in (proxy.cut, proxy.freeze, lambda: proxy.fail(502), lambda: proxy.fail(403)):
                    trouble()
                    for call in (api.version, lambda: anext(api._dashboard.stream(WEBSOCKET, api.list))):
                        try:
                            await call()
                        except (UnreachableError, RefusedError) as error:
                            errors.append(error)
                    proxy.mend()
        return errors

    errors = asyncio.run(work())
    assert len(errors) == 8
    for error in errors:
        assert error.__cause__ is None
        assert error.__context__ is None
        assert value not in repr(vars(error)) + repr(error.args)


def test_neither_ray_nor_an_http_client_is_imported_before_something_is_asked() -> None:
    script = (
        "import sys, marin_resources.ray_tpu.cluster.api.jobs_api\n"
        "import marin_resources.ray_tpu.cluster.local.local_cluster\n"
        "print({'ray', 'aiohttp', 'requests', 'fsspec'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "set()\n"


def token(cluster: Cluster) -> Token:
    return Token(Path(cluster.token_path).read_text(), f"the file {cluster.token_path!r}")
