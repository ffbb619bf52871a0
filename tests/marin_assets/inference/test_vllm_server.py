"""vLLM as a part of a step. Its environment is its own: `make test-vllm` makes it, and runs this."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import psutil
import pytest
from random_llama import write_random_llama
from running import alive, wait_until

from marin_assets.inference.engine import VLLM, EngineError, check_engine
from marin_assets.inference.server import ModelServer
from marin_assets.step.values import unwrap_versioned_value

ENGINE = replace(unwrap_versioned_value(VLLM), options=("--enforce-eager", "--max-num-seqs", "16"))
pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]


@pytest.fixture
def model_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
    try:
        check_engine(ENGINE)
    except EngineError as error:
        pytest.skip(str(error))
    return write_random_llama(tmp_path, list(topics.values())[:50], 128, head_dim=32)


def test_its_crash_loses_no_answer_and_nothing_of_it_is_left(model_path: str) -> None:
    found: dict[int, str] = {}
    with ModelServer(ENGINE, model_path) as server:
        family = _family(server)
        engines = [one for one in family if "EngineCore" in one.name() or "EngineCore" in " ".join(one.cmdline())]
        assert engines

        def take(i: int, answer: dict[str, Any]) -> None:
            if len(found) == 5:
                engines[0].kill()
            found[i] = answer["choices"][0]["text"]

        bodies = ({"prompt": [0, 10 + i], "max_tokens": 100, "temperature": 0.0} for i in range(60))
        server.map("/v1/completions", bodies, take)
        assert server.starts == 2
        assert len(found) == 60
        wait_until(lambda: not any(alive(one.pid) for one in family), "the first server to be gone")
        family = _family(server)
        again = server.post("/v1/completions", {"prompt": [0, 10], "max_tokens": 100, "temperature": 0.0})
        assert again["choices"][0]["text"] == found[0]
    assert not any(alive(one.pid) for one in family)


def test_what_it_cannot_allocate_is_told(model_path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "100000")
    with pytest.raises(EngineError) as failed, ModelServer(ENGINE, model_path):
        pass
    assert "did not start: it" in str(failed.value)
    assert "Its last lines:" in str(failed.value)


def _family(server: ModelServer) -> list[psutil.Process]:
    (top,) = [
        one
        for one in psutil.Process(os.getpid()).children(recursive=True)
        if "vllm.entrypoints.openai.api_server" in one.cmdline() and server.name in one.cmdline()
    ][:1]
    return [top, *top.children(recursive=True)]
