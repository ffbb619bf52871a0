"""A model behind a server with OpenAI's completions, with lm-eval's interface. It tokenizes as JaxLM does.

lm-eval's own `local-completions` puts no BOS before a text, and a model that was trained with one scores worse without.
This module imports lm-eval at the top: import it inside functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from marin_assets.inference.decoder import Prompt
from marin_assets.inference.generator import body_of
from marin_assets.inference.server import ModelServer
from marin_assets.inference.tokenizer import ModelTokenizer
from marin_assets.stages.evaluate.models.kept_answers import ANSWER, Answers
from marin_assets.stages.evaluate.models.progress import LoggedProgress
from marin_assets.stages.evaluate.models.token_lm import TokenLM

ECHOED = 2
"""Tokens of the window that a scored text cannot have: the server generates one, and a row has its last target too."""
GREEDY_TOLERANCE = 1e-6
"""Nats: two tokens this close are equally likely."""


class ServerLM(TokenLM):
    """Log-likelihoods and greedy generation of a served model. `window` is the server's, in tokens."""

    def __init__(
        self, server: ModelServer, tokenizer: ModelTokenizer, *, window: int, max_length: int | None = None
    ) -> None:
        super().__init__(tokenizer, min(max_length or window, window - ECHOED))
        self._server = server

    def _score_rows(self, rows: Sequence[Sequence[int]], counts: Sequence[int], answers: Answers) -> None:
        remaining = [i for i in range(len(rows)) if i not in answers.rows]
        progress = LoggedProgress("log-likelihoods", len(remaining))

        def take(number: int, answer: dict[str, Any]) -> None:
            i = remaining[number]
            likelihood = _likelihood(answer["choices"][0]["logprobs"], len(rows[i]), counts[i])
            answers.add({"place": i, ANSWER: likelihood})
            progress.advance(1)

        scoring = {"max_tokens": 1, "temperature": 0.0, "logprobs": 1, "echo": True, "return_tokens_as_token_ids": True}
        bodies = ({"prompt": list(rows[i]), **scoring} for i in remaining)
        self._server.map("/v1/completions", bodies, take)

    def _complete(self, prompts: Sequence[Prompt], answers: Answers) -> None:
        remaining = [i for i in range(len(prompts)) if i not in answers.rows]
        progress = LoggedProgress("generations", len(remaining))

        def take(number: int, answer: dict[str, Any]) -> None:
            text = answer["choices"][0]["text"]
            for stop in prompts[remaining[number]].stops:
                text = text.split(stop)[0]
            answers.add({"place": remaining[number], ANSWER: text})
            progress.advance(1)

        self._server.map("/v1/completions", (body_of(prompts[i]) for i in remaining), take)


def _likelihood(logprobs: dict[str, Any], length: int, count: int) -> tuple[float, bool]:
    """Return the log-likelihood of the last `count` of `length` echoed tokens, and whether each is the likeliest."""
    own = logprobs["token_logprobs"][length - count : length]
    best = [max(top.values()) for top in logprobs["top_logprobs"][length - count : length]]
    greedy = all(logprob >= most - GREEDY_TOLERANCE for logprob, most in zip(own, best, strict=True))
    return sum(own), greedy
