"""A server of a JAX model beside a step: what it answers, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import numpy as np
import psutil
import pytest
import requests
from random_llama import write_random_llama
from running import alive, wait_until

from marin_assets import output_path_of
from marin_assets.defaults import default_download, default_eval, default_generation
from marin_assets.inference.engine import JAX, EngineError
from marin_assets.inference.server import OUT_OF_MEMORY, ModelServer, RequestError
from marin_assets.step.values import unwrap_versioned_value

ENGINE = unwrap_versioned_value(JAX)
WINDOW = 64
RAW = default_download("x", "gs://x")
PROMPTS = [[0, *range(10, 10 + length)] for length in (3, 30, 7, 1, 20, 12)]


@pytest.fixture(scope="module")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_random_llama(tmp_path_factory.mktemp("hf"), list(topics.values())[:50], WINDOW)


@pytest.fixture(scope="module")
def server(model_path: str) -> Iterator[ModelServer]:
    with ModelServer(ENGINE, model_path) as running:
        yield running


@pytest.fixture(scope="module")
def logits_after(model_path: str) -> Any:
    """A function: the logits after some ids, computed by itself."""
    from marin_assets.inference.jax_model import bound, load_model, logits_at

    logits = bound(logits_at, load_model(model_path)[0])

    def compute(ids: list[int]) -> Any:
        padded = np.zeros((1, WINDOW), np.int32)
        padded[0, : len(ids)] = ids
        return np.asarray(logits(padded, np.array([[len(ids) - 1]], np.int32)))[0, 0]

    return compute


def asked(server: ModelServer, prompts: list[list[int]], **fields: Any) -> list[dict[str, Any]]:
    """The choices for prompts that are sent at once, greedy unless told otherwise."""
    found: dict[int, dict[str, Any]] = {}
    bodies = ({"prompt": ids, "max_tokens": 6, "temperature": 0.0, "logprobs": 1, **fields} for ids in prompts)
    server.map("/v1/completions", bodies, lambda i, answer: found.update({i: answer["choices"][0]}))
    return [found[i] for i in range(len(prompts))]


def ids_of(choice: dict[str, Any]) -> list[int]:
    return [int(name.removeprefix("token_id:")) for name in choice["logprobs"]["tokens"]]


@pytest.mark.long
def test_requests_at_once_get_the_likeliest_tokens_one_by_one(server: ModelServer, logits_after: Any) -> None:
    for ids, choice in zip(PROMPTS, asked(server, PROMPTS), strict=True):
        expected: list[int] = []
        while len(expected) < 6 and (token := int(logits_after([*ids, *expected]).argmax())) != 1:
            expected.append(token)
        assert ids_of(choice) == expected
        assert choice["finish_reason"] == ("length" if len(expected) == 6 else "stop")


@pytest.mark.long
def test_an_echoed_prompt_has_the_log_probability_of_each_token(server: ModelServer, logits_after: Any) -> None:
    (choice,) = asked(server, [PROMPTS[1]], max_tokens=0, echo=True)
    ids, found = PROMPTS[1], choice["logprobs"]
    assert ids_of(choice) == ids
    assert found["token_logprobs"][0] is None
    for i in range(1, len(ids)):
        logits = logits_after(ids[:i]).astype(np.float64)
        logprobs = logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max()
        assert found["token_logprobs"][i] == pytest.approx(logprobs[ids[i]], abs=1e-4)
        assert max(found["top_logprobs"][i].values()) == pytest.approx(logprobs.max(), abs=1e-4)


def test_a_seed_draws_the_same_text_and_another_seed_another(server: ModelServer) -> None:
    first, again, other = (
        asked(server, PROMPTS[:1], temperature=1.0, seed=seed, max_tokens=20)[0]["text"] for seed in (1, 1, 2)
    )
    assert first == again != other


def test_a_stop_text_ends_an_answer_and_is_not_in_it(server: ModelServer) -> None:
    (whole,) = asked(server, PROMPTS[1:2])
    stop = whole["text"][2:4]
    (stopped,) = asked(server, PROMPTS[1:2], stop=[stop])
    assert stopped["text"] == whole["text"][: whole["text"].index(stop)]
    assert stopped["finish_reason"] == "stop"


def test_a_text_gets_the_begin_of_text_that_training_gives_it(server: ModelServer) -> None:
    answer = server.post("/v1/completions", {"prompt": ["The", "A"], "max_tokens": 1, "temperature": 0})
    assert [choice["index"] for choice in answer["choices"]] == [0, 1]
    assert answer["usage"]["completion_tokens"] == 2


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            {"prompt": [0] * 60, "max_tokens": 5},
            "A prompt of 60 tokens and 5 to generate do not fit in the window of 64.",
        ),
        ({"prompt": []}, "prompt is [], expected a text"),
        ({"prompt": [0, 10**12]}, "A token is 1000000000000, expected one of the model's, from 0 to "),
        ({"prompt": [[0, "a"]], "max_tokens": 0, "echo": True, "logprobs": 1}, "A token is 'a', expected one of"),
        ({"prompt": [0], "temperature": "hot"}, "temperature is 'hot', expected a number from 0 to 100."),
        ({"prompt": [0], "max_tokens": "many"}, "max_tokens is 'many', expected a whole number."),
        ({"prompt": [0], "n": 2}, "n is 2, and this server has 1 only"),
        ({"prompt": [0], "temperature": -1}, "temperature is -1, expected a number from 0 to 100."),
        ({"prompt": [0], "model": "gpt"}, "The model 'gpt' is not served here"),
    ],
)
def test_a_request_that_cannot_be_served_is_a_sentence(server: ModelServer, body: Any, sentence: str) -> None:
    with pytest.raises(RequestError) as refused:
        server.post("/v1/completions", body)
    assert sentence in str(refused.value)
    assert "chat template" in _refused(server, "/v1/chat/completions", {"messages": []})


def _refused(server: ModelServer, path: str, body: dict[str, Any]) -> str:
    with pytest.raises(RequestError) as refused:
        server.post(path, body)
    return str(refused.value)


@pytest.mark.long
def test_a_server_that_dies_is_started_again_and_no_answer_is_lost(model_path: str) -> None:
    prompts = [[0, 10 + i] for i in range(40)]
    with ModelServer(ENGINE, model_path) as server:
        undisturbed = asked(server, prompts, max_tokens=30)
        found: dict[int, dict[str, Any]] = {}

        def take(i: int, answer: dict[str, Any]) -> None:
            if len(found) == 5:
                _process_of(server).kill()
            found[i] = answer["choices"][0]

        bodies = ({"prompt": ids, "max_tokens": 30, "temperature": 0.0, "logprobs": 1} for ids in prompts)
        server.map("/v1/completions", bodies, take)
        assert server.starts == 2
        for i, before in enumerate(undisturbed):
            assert found[i]["text"] == before["text"]
            logprobs = (one["logprobs"]["token_logprobs"] for one in (found[i], before))
            assert next(logprobs) == pytest.approx(next(logprobs), abs=1e-5)  # by who shares its batch
    assert not [one for one in _servers_of(os.getpid()) if server.name in one.cmdline()]


def test_a_server_that_keeps_dying_is_told_with_the_reason(
    model_path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A Python whose server says what torch says without memory."""
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\n"
        'case "$1" in -c) exit 0;; esac\n'
        "echo torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB >&2\nexit 1\n"
    )
    python.chmod(0o755)
    monkeypatch.setenv("MARIN_TORCH_PYTHON", str(python))
    with pytest.raises(EngineError) as failed, ModelServer(replace(ENGINE, kind="torch"), model_path):
        pass
    assert "did not start: it ran out of memory. Lower --max-model-len" in str(failed.value)
    assert "CUDA out of memory. Tried to allocate 2.00 GiB" in str(failed.value)


@pytest.mark.parametrize(
    ("lines", "memory"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", True),
        ("(EngineCore pid=7) ERROR 11-26 ValueError: No available memory for the cache blocks.", True),
        ("jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes.", True),
        ("OSError: [Errno 12] Cannot allocate memory", True),
        ("  what():  CUDA out of memory", True),
        ("MemoryError", True),
        ("    except MemoryError:  # out of memory\nValueError: the model has no head", False),
        ("google.api_core.exceptions.ResourceExhausted: 429 RESOURCE_EXHAUSTED: Quota exceeded for reads", False),
        ("INFO max memory 3 GiB; the server will not run out of memory", False),
    ],
)
def test_only_an_error_of_a_server_says_that_its_memory_was_short(lines: str, memory: bool) -> None:
    assert bool(OUT_OF_MEMORY.search(lines)) is memory


def test_an_engine_that_is_not_there_is_told_with_what_makes_it(
    model_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARIN_VLLM_PYTHON", sys.executable)
    with pytest.raises(EngineError, match=r"needs vllm, and .* lacks vllm\. Set MARIN_VLLM_PYTHON .* make \.venv-vllm"):
        ModelServer(replace(ENGINE, kind="vllm"), model_path)
    monkeypatch.setenv("MARIN_VLLM_PYTHON", "/no/python")
    with pytest.raises(EngineError, match=r"'/no/python' cannot be run"):
        ModelServer(replace(ENGINE, kind="vllm"), model_path)


@pytest.mark.parametrize(
    ("engine", "sentence"),
    [
        ("vllm", "The engine is 'vllm', expected None, TORCH, VLLM, another Engine or an Endpoint. Pass one of them."),
        (
            replace(ENGINE, kind="vlm"),
            "The engine is of the kind 'vlm', expected one of 'jax', 'torch', 'vllm'. Did you mean 'vllm'?",
        ),
    ],
)
def test_what_is_no_engine_is_a_sentence_when_the_step_is_made(engine: Any, sentence: str) -> None:
    for make in (
        lambda: default_generation("x", output_path_of(RAW), output_path_of(RAW), "{text}", engine=engine),
        lambda: default_eval(RAW, engine=engine),
    ):
        with pytest.raises(EngineError) as refused:
            make()
        assert str(refused.value) == sentence


STEP = """
import sys, time
from marin_assets.inference.engine import JAX
from marin_assets.inference.server import ModelServer
from marin_assets.step.values import unwrap_versioned_value
with ModelServer(unwrap_versioned_value(JAX), sys.argv[1]) as server:
    print(server.url, flush=True)
    time.sleep(600)
"""


@pytest.mark.long
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_its_step(model_path: str, end: signal.Signals) -> None:
    step = subprocess.Popen([sys.executable, "-c", STEP, model_path], stdout=subprocess.PIPE, text=True)
    assert step.stdout is not None
    url = step.stdout.readline().strip()
    assert requests.get(f"{url}/health", timeout=5).ok
    (server,) = _servers_of(step.pid)
    step.send_signal(end)
    step.wait(20)
    wait_until(lambda: not alive(server.pid), "the server to end", timeout_s=20)
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{url}/health", timeout=5)
    step.communicate()


def _servers_of(pid: int) -> list[psutil.Process]:
    below = psutil.Process(pid).children(recursive=True)
    return [one for one in below if "marin_assets.inference.jax_server" in one.cmdline()]


def _process_of(server: ModelServer) -> psutil.Process:
    (process,) = [one for one in _servers_of(os.getpid()) if server.name in one.cmdline()]
    return process
