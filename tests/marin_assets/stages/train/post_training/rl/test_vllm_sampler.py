"""vLLM samples: what it draws by is what the loss sees, with the newest weights, also after its server has died."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import psutil
import pytest
from rl_environments import Turns
from rl_ledgers import require_exact, require_same_replay
from rl_training import adam, rl_config, write_ending_llama
from running import alive, wait_until

from marin_assets.inference.decoder import Prompt
from marin_assets.inference.engine import VLLM, EngineError, check_engine
from marin_assets.inference.jax_model import load_model
from marin_assets.inference.scorer import Scorer
from marin_assets.stages.train.metrics.metrics import read_metrics
from marin_assets.stages.train.rl.config import TrainRlConfig
from marin_assets.stages.train.rl.lessons import lesson_of
from marin_assets.stages.train.rl.rollout import read_rollouts
from marin_assets.stages.train.rl.train_rl import train_rl
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import exists
from marin_resources.storage.paths import join

ENGINE = replace(unwrap_versioned_value(VLLM), options=("--enforce-eager", "--max-num-seqs", "16"))
pytestmark = [pytest.mark.long, pytest.mark.timeout(2400), pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_ending_llama(tmp_path_factory.mktemp("model"), head_dim=32)


@pytest.fixture
def config(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrainRlConfig:
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
    try:
        check_engine(ENGINE)
    except EngineError as error:
        pytest.skip(str(error))
    free: dict[str, Any] = {"order": "free", "samplers": 1, "staleness": 0, "engine": ENGINE}
    lessons = {"turns": lesson_of(Turns())}
    return rl_config(model, tmp_path / "out", **free, lessons=lessons, num_train_steps=6, optimizer=adam(1e-2))


def test_the_loss_sees_the_likelihoods_by_which_it_drew_after_each_update(
    config: TrainRlConfig, tmp_path: Path
) -> None:
    result = train_rl(config)
    rows = read_metrics(join(config.output_path, "metrics.jsonl"))
    assert [row["rl/staleness"] for row in rows] == [0] * 6
    assert max(row["train/mismatch_max"] for row in rows) < 1e-5
    rollouts = require_exact(config)
    assert len({rollout.weights_digest for rollout in rollouts}) >= 4
    assert {rollout.finish for rollout in rollouts} == {"stop", "length"}
    assert any(0 in rollout.mask for rollout in rollouts)  # a turn ended, and the next was drawn behind the reply
    assert result["rollouts_used"] == 6 * 4 * 4
    require_same_replay(config, tmp_path / "replay")


def test_a_server_that_dies_is_started_with_the_newest_weights(config: TrainRlConfig) -> None:
    with killed_after_step(config, 2) as family:
        train_rl(config)
    rows = read_metrics(join(config.output_path, "metrics.jsonl"))
    assert max(row["train/mismatch_max"] for row in rows) < 1e-5
    assert len(read_rollouts(config.output_path)) == 6 * 4 * 4
    wait_until(lambda: not any(alive(process.pid) for process in family), "the servers to be gone")


def test_a_vllm_that_takes_no_new_weights_is_started_again(
    config: TrainRlConfig, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import jax

    from marin_assets.stages.train.rl.sampling import served_decoder

    monkeypatch.setattr(served_decoder, "ENVIRONMENT", {})  # then its server refuses such requests
    first, tokenizer = load_model(model)
    second = jax.tree.map(lambda leaf: leaf * 1.5 if eqx.is_inexact_array(leaf) else leaf, first)
    with served_decoder.ServedDecoder(config, first, tokenizer, str(tmp_path)) as decoder:
        for number, weights in enumerate((first, second)):
            if number:
                decoder.replace_weights(weights)
            prompt = Prompt(ids=(0, 10, 11), max_tokens=8, temperature=1.0, seed=3, keeps_drawn_logprobs=True)
            decoder.admit(number, prompt)
            [(_, drawn)] = decoder.step()
            ids = [*prompt.ids, *drawn.ids, *([] if drawn.end_token is None else [drawn.end_token])]
            [scores] = Scorer(weights).score([ids])
            assert scores.logprobs[-len(drawn.drawn_logprobs) :] == pytest.approx(drawn.drawn_logprobs, abs=1e-4)
        assert decoder._server.starts == 2


class killed_after_step:
    """Kills the engine of the server once a step is trained."""

    def __init__(self, config: TrainRlConfig, step: int) -> None:
        self._config, self._step = config, step
        self._family: list[psutil.Process] = []
        self._thread = threading.Thread(target=self._kill)

    def __enter__(self) -> list[psutil.Process]:
        self._thread.start()
        return self._family

    def __exit__(self, *ended: Any) -> None:
        self._thread.join()

    def _kill(self) -> None:
        path = join(self._config.output_path, "metrics.jsonl")
        wait_until(lambda: exists(path) and any(row["step"] >= self._step for row in read_metrics(path)), "step", 900)
        self._family += [process for process in servers()]
        engines = [process for process in self._family if "EngineCore" in process.name()]
        os.kill(engines[0].pid, signal.SIGKILL)


def servers() -> Iterator[psutil.Process]:
    for process in psutil.Process().children(recursive=True):
        if "EngineCore" in process.name() or "vllm.entrypoints" in " ".join(process.cmdline()):
            yield process
