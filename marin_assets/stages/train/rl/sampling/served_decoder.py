"""vLLM in the place of the decoder: a server that is a part of the sampler, and takes new weights as it runs.

Its log-probabilities are those by which it draws (`--logprobs-mode processed_logprobs`). New weights are exported as a
Hugging Face folder, and loaded in place by the worker's `reload_weights`, with the cache of keys and values emptied; a
vLLM that lacks this is started again. Tried with vLLM 0.32 on CPUs. Importing this imports Levanter.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import shutil
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Self

from levanter.utils.jax_utils import local_cpu_mesh

from marin_assets.inference.completion_fields import MOST_SEED
from marin_assets.inference.decoder import Completion, Prompt
from marin_assets.inference.endpoint.answers import drawn_completion_of
from marin_assets.inference.engine import EngineError, RequestError
from marin_assets.inference.generator import body_of
from marin_assets.inference.server import ModelServer
from marin_assets.inference.tokenizer import ModelTokenizer
from marin_assets.stages.train.levanter_run.export import Export
from marin_assets.stages.train.levanter_run.models import model_config
from marin_assets.stages.train.rl.config import TrainRlConfig, as_training

OPTIONS = ("--logprobs-mode", "processed_logprobs", "--generation-config", "vllm")
ENVIRONMENT = {"VLLM_SERVER_DEV_MODE": "1"}
"""By this vLLM serves the requests for new weights, at this machine's own address alone."""

log = logging.getLogger(__name__)


class ServedDecoder:
    """Has the methods of a Decoder that sampling needs. Use it in a `with` block, which starts the server."""

    def __init__(self, config: TrainRlConfig, model: Any, tokenizer: ModelTokenizer, folder: str) -> None:
        """`model` is a Levanter model, `folder` an empty one on this machine. Raises EngineError."""
        assert config.engine is not None
        self.tokenizer, self._folder, self._exports = tokenizer, folder, 0
        self.max_length = min(config.max_length or model.Pos.size, model.Pos.size)
        training = as_training(config)
        converter = model_config(training.model, str(tokenizer.levanter.name_or_path)).hf_checkpoint_converter()
        self._export = Export(training, converter.replaced(tokenizer=tokenizer.levanter), tokenizer.levanter)
        options = (*config.engine.options, *OPTIONS)
        engine = dataclasses.replace(config.engine, max_length=self.max_length, options=options)
        self._server = ModelServer(engine, self._exported(model), env=ENVIRONMENT)
        self._threads = ThreadPoolExecutor(config.groups_per_unit * config.group_size, "vllm")
        self._under_way: dict[Future[dict[str, Any]], int] = {}

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(self, *ended: Any) -> None:
        self._server.__exit__(*ended)
        self._threads.shutdown(cancel_futures=True)

    def replace_weights(self, model: Any) -> None:
        """Take the weights of another model of the same shape, while no text is under way. Raises EngineError."""
        assert self.is_idle
        before, self._server.model_folder = self._server.model_folder, self._exported(model)
        try:
            new = {"method": "reload_weights", "kwargs": {"weights_path": self._server.model_folder}}
            self._server.post("/collective_rpc", new)
            if not self._server.post("/reset_prefix_cache", {}).get("success"):
                raise EngineError(
                    "vLLM kept the keys and values of earlier weights in its cache, expected an empty one."
                )
        except RequestError as error:
            log.warning("vLLM takes no new weights as it runs (%s): it is started again", error)
            self._server.restart()
        shutil.rmtree(before)

    @property
    def is_idle(self) -> bool:
        return not self._under_way

    def admit(self, number: int, prompt: Prompt) -> None:
        """Begin a text, under a number of the caller's."""
        body = {
            **body_of(prompt),
            "seed": prompt.seed % MOST_SEED,
            "stop_token_ids": [*self.tokenizer.stop_token_ids, *prompt.stop_ids],
            "logprobs": 0,
            "return_token_ids": True,
        }
        self._under_way[self._threads.submit(self._server.post, "/v1/completions", body)] = number

    def step(self) -> list[tuple[int, Completion]]:
        """Wait until some text has ended. Returns those that have, with their numbers. Raises EngineError."""
        ended = wait(self._under_way, return_when=FIRST_COMPLETED).done
        return [(self._under_way.pop(answer), drawn_completion_of(answer.result())) for answer in ended]

    def _exported(self, model: Any) -> str:
        """Write the model as a Hugging Face folder. Returns its path."""
        self._exports += 1
        path = os.path.join(self._folder, f"weights-{self._exports}")
        with local_cpu_mesh():
            self._export.save(model, path)
        return path
