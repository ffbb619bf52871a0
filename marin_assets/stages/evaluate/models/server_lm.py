"""A model behind a server with OpenAI's completions, with lm-eval's interface. It tokenizes as JaxLM does.

lm-eval's own `local-completions` puts no BOS before a text, and a model that was trained with one scores worse without.
This module imports lm-eval at the top: import it inside functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lm_eval.api.instance import Instance

from marin_assets.inference.completion_fields import SAMPLING, SERVED
from marin_assets.inference.decoder import Prompt
from marin_assets.inference.endpoint.answers import choice_of, likelihood_of, text_of
from marin_assets.inference.endpoint.client import EndpointClient
from marin_assets.inference.engine import EngineError, RequestError
from marin_assets.inference.generator import body_of
from marin_assets.inference.jax_model import ModelError
from marin_assets.inference.server import ModelServer
from marin_assets.inference.tokenizer import ModelTokenizer
from marin_assets.stages.evaluate.models.generation_settings import GenerationSettings, until_stop
from marin_assets.stages.evaluate.models.kept_answers import ANSWER, Answers
from marin_assets.stages.evaluate.models.progress import LoggedProgress
from marin_assets.stages.evaluate.models.sampling_probe import PROBE, SamplingProbe
from marin_assets.stages.evaluate.models.token_lm import TokenLM

ECHOED = 2
"""Tokens of the window that a scored text cannot have: the server generates one, and a row has its last target too."""
SCORING = {"max_tokens": 1, "temperature": 0.0, "logprobs": 1, "echo": True, "return_tokens_as_token_ids": True}
"""Settings of a request that scores its prompt."""


class ServerLM(TokenLM):
    """Log-likelihoods and generation of a served model. `window` is the server's, in tokens."""

    def __init__(
        self,
        server: ModelServer | EndpointClient,
        tokenizer: ModelTokenizer,
        *,
        window: int,
        max_length: int | None = None,
    ) -> None:
        super().__init__(tokenizer, min(max_length or window, window - ECHOED))
        self._server = server
        kind = server.engine.kind if isinstance(server, ModelServer) else "endpoint"
        self.engine, self.sampling = f"the engine {kind!r}", SERVED if kind in ("jax", "torch") else SAMPLING

    def _score_rows(self, rows: Sequence[Sequence[int]], counts: Sequence[int], answers: Answers) -> None:
        remaining = [i for i in range(len(rows)) if i not in answers.rows]
        progress = LoggedProgress("log-likelihoods", len(remaining))

        def take(number: int, answer: dict[str, Any]) -> None:
            i = remaining[number]
            likelihood = likelihood_of(answer, len(rows[i]), counts[i])
            answers.add({"place": i, ANSWER: likelihood})
            progress.advance(1)

        bodies = ({"prompt": list(rows[i]), **SCORING} for i in remaining)
        self._server.map("/v1/completions", bodies, take)

    def _complete(self, prompts: Sequence[Prompt], answers: Answers) -> None:
        remaining = [i for i in range(len(prompts)) if i not in answers.rows]
        progress = LoggedProgress("generations", len(remaining))

        def take(number: int, answer: dict[str, Any]) -> None:
            i = remaining[number]
            answers.add({"place": i, ANSWER: until_stop(text_of(answer), prompts[i].stops)})
            progress.advance(1)

        self._server.map("/v1/completions", (body_of(prompts[i]) for i in remaining), take)


class EndpointLM(ServerLM):
    """The model of an endpoint, by the tokens of an export's tokenizer."""

    def __init__(
        self, client: EndpointClient, tokenizer: ModelTokenizer, *, window: int, max_length: int | None = None
    ) -> None:
        super().__init__(client, tokenizer, window=window, max_length=max_length)
        self._client = client
        self._sampling_probe = SamplingProbe(client)
        self._cannot_score: str | None = None
        """The reason for which it scores nothing, empty if it does; None before the probe."""

    def check(self, request: Instance) -> None:
        """As the base class; the first request for a score, and for an answer that is sampled, sends one to the server,
        to see whether it has that."""
        super().check(request)
        if request.request_type == "generate_until":
            self._sampling_probe.check(self._settings(request.args[1]), "/v1/completions", self._probe_of)
            return
        if self._cannot_score is None:
            self._cannot_score = self._probe()
        if self._cannot_score:
            raise ModelError(self._cannot_score)

    def _probe_of(self, settings: GenerationSettings) -> dict[str, Any]:
        ids = tuple(self.tok_encode(PROBE))
        return body_of(Prompt(ids=ids, max_tokens=1, temperature=settings.temperature, sampling=settings.sampling))

    def _probe(self) -> str:
        """Have the server score a text. Returns the reason why it cannot, empty if it can."""
        ids = self.tok_encode(PROBE)
        try:
            answer = self._client.post("/v1/completions", {"prompt": ids, **SCORING})
            likelihood_of(answer, len(ids), len(ids) - 1)
        except (RequestError, EngineError) as error:
            return (
                f"{self._client.shown} scores no given text, which takes /v1/completions with echo and logprobs, as "
                f"vLLM has them: {error}"
            )
        echoed = choice_of(answer).get("text") or PROBE
        if PROBE in echoed:
            return ""
        return (
            f"{self._client.shown} reads the tokens of {PROBE!r} as {echoed[:60]!r}: its tokenizer is not that of the "
            "export. Pass the export of that very model."
        )
