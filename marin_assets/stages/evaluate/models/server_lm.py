"""A model behind a server with OpenAI's completions, with lm-eval's interface. It tokenizes as JaxLM does.

lm-eval's own `local-completions` puts no BOS before a text, and a model that was trained with one scores worse without.
This module imports lm-eval at the top: import it inside functions.
"""

from __future__ import annotations

import logging
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
from marin_assets.inference.model_servers import ModelServers
from marin_assets.inference.tokenizer import ModelTokenizer
from marin_assets.stages.evaluate.models.generation_settings import GenerationSettings, until_stop
from marin_assets.stages.evaluate.models.kept_answers import ANSWER, Answers
from marin_assets.stages.evaluate.models.progress import LoggedProgress
from marin_assets.stages.evaluate.models.sampling_probe import PROBE, SamplingProbe
from marin_assets.stages.evaluate.models.token_lm import TokenLM

PATH = "/v1/completions"
SCORING = {"max_tokens": 1, "temperature": 0.0, "logprobs": 1, "echo": True, "return_tokens_as_token_ids": True}
"""Settings of a request that scores its prompt."""
GENERATED = (1, 0)
"""Tokens to generate behind a scored text, tried in turn: vLLM generates one, our servers score a text that fills the
window without."""

log = logging.getLogger(__name__)


class ServerLM(TokenLM):
    """Log-likelihoods and generation of a served model. `window` is the server's, in tokens."""

    def __init__(
        self,
        server: ModelServers | EndpointClient,
        tokenizer: ModelTokenizer,
        *,
        window: int,
        max_length: int | None = None,
    ) -> None:
        if max_length is not None and max_length > window:
            raise ModelError(f"max_length is {max_length}, expected at most the server's window of {window}.")
        super().__init__(tokenizer, max_length or window)
        self._server, self._window = server, window
        self._scored: tuple[int, int] = (window - 1, 1)
        """The most tokens of a text that the server is known to score, and of those that it generates behind it."""
        kind = "endpoint" if isinstance(server, EndpointClient) else server.engine.kind
        self.engine, self.sampling = f"the engine {kind!r}", SERVED if kind in ("jax", "torch") else SAMPLING

    def _score_rows(self, rows: Sequence[Sequence[int]], counts: Sequence[int], answers: Answers) -> None:
        most, generated = self._scored = self._scores(max(rows, key=len, default=()))
        remaining = [i for i in range(len(rows)) if i not in answers.rows]
        parts = [(i, *part) for i in remaining for part in parts_of(rows[i], counts[i], most)]
        progress = LoggedProgress("log-likelihoods", len(remaining))
        likelihoods: dict[int, list[tuple[float, bool]]] = {}

        def take(number: int, answer: dict[str, Any]) -> None:
            i, ids, count = parts[number]
            of_row = likelihoods.setdefault(i, [])
            of_row.append(likelihood_of(answer, len(ids), count))
            if len(of_row) == len(parts_of(rows[i], counts[i], most)):
                totals, are_greedy = zip(*likelihoods.pop(i), strict=True)
                answers.add({"place": i, ANSWER: (sum(totals), all(are_greedy))})
                progress.advance(1)

        bodies = ({"prompt": list(ids), **SCORING, "max_tokens": generated} for _, ids, _ in parts)
        self._server.map(PATH, bodies, take)
        if shortened := sum(len(row) > most for row in rows):
            self.shortened += shortened
            log.warning(
                "the server scores %d tokens of a text, and %d of %d texts have up to %d: their last tokens are "
                "predicted from fewer than in this process. Serve the model with a window of %d, or pass max_length=%d "
                "to all engines",
                *(most, shortened, len(rows), max(map(len, rows)), self._max_length + 2, self._window - 2),
            )

    def _scores(self, longest: Sequence[int]) -> tuple[int, int]:
        """The most tokens of a text that the server scores, and how many it generates behind it: it is tried by the
        longest text, if that does not fit for sure."""
        if len(longest) <= self._scored[0]:
            return self._scored
        for generated in GENERATED:
            try:
                self._server.post(PATH, {"prompt": list(longest), **SCORING, "max_tokens": generated})
            except RequestError as refused:
                log.info("a text of %d tokens is not scored: %s", len(longest), refused)
            else:
                return len(longest), generated
        return self._scored

    def _complete(self, prompts: Sequence[Prompt], answers: Answers) -> None:
        remaining = [i for i in range(len(prompts)) if i not in answers.rows]
        progress = LoggedProgress("generations", len(remaining))

        def take(number: int, answer: dict[str, Any]) -> None:
            i = remaining[number]
            answers.add({"place": i, ANSWER: until_stop(text_of(answer), prompts[i].stops)})
            progress.advance(1)

        self._server.map(PATH, (body_of(prompts[i]) for i in remaining), take)


def parts_of(row: Sequence[int], count: int, most: int) -> list[tuple[Sequence[int], int]]:
    """Parts of a row by which a server that takes `most` ids scores its last `count`: (ids, how many of the last).

    The last ids of a longer row are scored from the `most` that end it, the others as in the whole row.
    """
    beyond = len(row) - most
    if beyond <= 0:
        return [(row, count)]
    last = (row[-most:], min(count, beyond))
    return [last] if count <= beyond else [(row[:most], count - beyond), last]


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
            answer = self._client.post(PATH, {"prompt": ids, **SCORING})
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
