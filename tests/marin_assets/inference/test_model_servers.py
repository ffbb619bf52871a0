"""Several servers of one model give the answers of the model in process, and share the requests."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import psutil
import pytest
from random_llama import write_random_llama

from marin_assets.documents import Document, shard_name, write_documents
from marin_assets.inference.engine import JAX, Engine, EngineError, require_engine
from marin_assets.inference.model_servers import ModelServers, shares_of
from marin_assets.stages.generate.generate_from_documents import GenerateConfig, generate_from_documents
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.hardware.resources import cpu, tpu
from marin_resources.ray_tpu.shards.job_allocation import JobAllocation, reserve

WINDOW = 64
TWO = replace(JAX, servers=2)
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_random_llama(tmp_path_factory.mktemp("hf"), list(topics.values())[:50], WINDOW)


@pytest.fixture(scope="module")
def documents_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("documents")
    for number in range(2):
        documents = [Document(id=name, text=topics[name][:60]) for name in sorted(topics)[number:60:2]]
        write_documents(str(folder / shard_name(number, 2)), documents)
    return str(folder)


def answers(model_path: str, documents_path: str, output: Path, engine: Engine | None) -> dict[str, bytes]:
    config = GenerateConfig(
        model_path=model_path,
        documents_path=documents_path,
        output_path=str(output),
        template="{text}\nIn short:",
        max_tokens=12,
        engine=engine,
    )
    generate_from_documents(unwrap_versioned_value(config))
    return {path.name: path.read_bytes() for path in sorted(output.glob("*.jsonl.zst"))}


@pytest.fixture(scope="module")
def in_process(model_path: str, documents_path: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return answers(model_path, documents_path, tmp_path_factory.mktemp("in-process"), None)


def processes_of_servers() -> list[psutil.Process]:
    own = psutil.Process().children(recursive=True)
    return [process for process in own if process.cmdline()[1:3] == ["-m", "marin_assets.inference.jax_server"]]


@pytest.mark.long
def test_two_servers_give_the_answers_of_the_model_in_process(
    model_path: str, documents_path: str, in_process: dict[str, bytes], tmp_path: Path
) -> None:
    assert answers(model_path, documents_path, tmp_path, TWO) == in_process
    assert processes_of_servers() == []


@pytest.mark.long
def test_requests_are_shared_and_outlive_a_server(model_path: str) -> None:
    engine = unwrap_versioned_value(replace(TWO, concurrency=4))
    bodies = [{"prompt": [1, number + 2], "max_tokens": 8, "temperature": 0} for number in range(64)]
    texts: dict[int, dict[str, Any]] = {}
    with ModelServers(engine, model_path, model_path) as servers:
        dead, alive = processes_of_servers()

        def take(number: int, answer: dict[str, Any]) -> None:
            texts[number] = answer["choices"][0]["text"]
            if len(texts) == 5:
                os.kill(dead.pid, signal.SIGKILL)

        before_s = alive.cpu_times().user
        servers.map("/v1/completions", bodies, take)
        assert alive.cpu_times().user > before_s
        assert len(processes_of_servers()) == 2
        again: dict[int, dict[str, Any]] = {}
        servers.map("/v1/completions", bodies, lambda n, answer: again.update({n: answer["choices"][0]["text"]}))
    assert sorted(texts) == list(range(64))
    assert again == texts


@pytest.fixture
def in_a_job(shared_ray: None) -> Iterator[None]:
    with reserve(JobAllocation(cpus=1)):
        yield


@pytest.mark.long
def test_servers_on_the_hosts_of_a_cluster_give_the_same_answers(
    model_path: str,
    documents_path: str,
    in_process: dict[str, bytes],
    in_a_job: None,
    tmp_path: Path,
) -> None:
    elsewhere = replace(TWO, server_resources=cpu(0.5))
    assert answers(model_path, documents_path, tmp_path, elsewhere) == in_process


def test_the_error_of_a_server_elsewhere_is_that_of_the_step(
    model_path: str, in_a_job: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = unwrap_versioned_value(replace(JAX, server_resources=cpu(0.5), options=("--no-such-option",)))
    with pytest.raises(EngineError, match=r"The jax server of .* did not start"):
        ModelServers(engine, model_path, model_path).__enter__()


def test_the_devices_of_a_machine_are_shared_evenly() -> None:
    assert shares_of("0,1,2,3", 2) == ["0,1", "2,3"]
    assert shares_of("GPU-a,GPU-b", 2) == ["GPU-a", "GPU-b"]
    assert shares_of("0,1", 1) == [None]
    assert shares_of(None, 3) == shares_of("", 3) == [None] * 3
    with pytest.raises(EngineError, match="servers=3, and this step has 4 devices"):
        shares_of("0,1,2,3", 3)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"servers": 0}, "servers=0, expected a whole number from 1"),
        ({"servers": "2"}, "servers='2', expected"),
        ({"servers": True}, "servers=True, expected"),
        ({"concurrency": 0}, "concurrency=0, expected"),
        ({"server_resources": "gpu"}, "server_resources='gpu', expected CPUs or GPUs"),
        ({"server_resources": tpu("v5e-8")}, "expected CPUs or GPUs of one machine"),
    ],
)
def test_a_wrong_number_of_servers_is_a_sentence(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(EngineError, match=named):
        require_engine(replace(JAX, **fields))
