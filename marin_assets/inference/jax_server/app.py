"""The HTTP side of the server: OpenAI's completions, over a worker."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from marin_assets.inference.decoder import Completion, Prompt
from marin_assets.inference.jax_model import ModelError
from marin_assets.inference.jax_server.worker import Worker
from marin_assets.inference.scorer import TokenScores

DEFAULT_TOKENS = 16
"""OpenAI's default."""
NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "stream": (False,),
    "top_p": (1, 1.0),
    "top_k": (-1, 0),
    "presence_penalty": (0, 0.0),
    "frequency_penalty": (0, 0.0),
    "suffix": (None, ""),
}
"""Fields of which only these values are served: others would change the answer."""
MAX_BODY_BYTES = 2**26


def make_app(worker: Worker, name: str) -> web.Application:
    """The application. `name` is what clients call the model."""
    app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[_errors])
    app.add_routes(
        [
            web.get("/health", _health),
            web.get("/v1/models", _Models(worker, name).get),
            web.post("/v1/completions", _Completions(worker, name).post),
            web.post("/v1/chat/completions", _Chats(worker, name).post),
        ]
    )
    return app


async def _health(request: web.Request) -> web.Response:
    return web.Response()


@web.middleware
async def _errors(request: web.Request, handler: Any) -> web.StreamResponse:
    """Answer a request that cannot be served with status 400 and a sentence."""
    try:
        response: web.StreamResponse = await handler(request)
    except (ValueError, TypeError) as error:  # of its JSON, its values or their types; a ModelError is one
        return web.json_response({"error": {"message": str(error), "type": "BadRequestError", "code": 400}}, status=400)
    return response


class _Endpoint:
    """The common part of the endpoints: the model, its name, the checks of a request."""

    def __init__(self, worker: Worker, name: str) -> None:
        self.worker, self.name = worker, name

    async def body(self, request: web.Request) -> dict[str, Any]:
        """The checked body. Raises ModelError, JSONDecodeError."""
        body = await request.json()
        if not isinstance(body, dict):
            raise ModelError(f"The request is {str(body)[:80]!r}, expected a JSON object.")
        self.check(body)
        return body

    def check(self, body: Mapping[str, Any]) -> None:
        if body.get("model") not in (None, self.name):
            raise ModelError(f"The model {body['model']!r} is not served here, expected {self.name!r}.")
        for field, values in NEUTRAL.items():
            if field in body and body[field] not in values:
                raise ModelError(f"{field} is {body[field]!r}, and this server has {values[0]!r} only. Leave it out.")

    def prompt(self, ids: list[int], body: Mapping[str, Any], max_tokens: int, number: int) -> Prompt:
        stop = body.get("stop") or ()
        return Prompt(
            ids=tuple(ids),
            max_tokens=max_tokens,
            stops=(stop,) if isinstance(stop, str) else tuple(stop),
            stop_ids=tuple(body.get("stop_token_ids") or ()),
            temperature=float(_number(body, "temperature", 1.0)),
            seed=int(_number(body, "seed", 0)) + number,
        )

    def with_bos(self, text: str) -> list[int]:
        ids = self.worker.tokenizer.encode(text)
        bos = self.worker.tokenizer.bos_token_id
        return ids if bos is None or ids[:1] == [bos] else [bos, *ids]


class _Models(_Endpoint):
    async def get(self, request: web.Request) -> web.Response:
        model = {"id": self.name, "object": "model", "max_model_len": self.worker.max_length}
        return web.json_response({"object": "list", "data": [model]})


class _Completions(_Endpoint):
    async def post(self, request: web.Request) -> web.Response:
        body = await self.body(request)
        prompts = [
            self.with_bos(prompt) if isinstance(prompt, str) else prompt for prompt in _prompts(body.get("prompt"))
        ]
        max_tokens = int(_number(body, "max_tokens", DEFAULT_TOKENS))
        answers = await asyncio.gather(*(self._answer(ids, body, max_tokens, i) for i, ids in enumerate(prompts)))
        choices = [{"index": i, **answer} for i, (answer, _) in enumerate(answers)]
        return web.json_response(
            {
                "id": f"cmpl-{uuid.uuid4().hex}",
                "object": "text_completion",
                "created": int(time.time()),
                "model": self.name,
                "choices": choices,
                "usage": _usage(sum(map(len, prompts)), sum(count for _, count in answers)),
            }
        )

    async def _answer(
        self, ids: list[int], body: Mapping[str, Any], max_tokens: int, number: int
    ) -> tuple[dict[str, Any], int]:
        """A choice, and the number of tokens generated for it."""
        echo, logprobs = bool(body.get("echo")), body.get("logprobs")
        completion: Completion | None = None
        if max_tokens or not echo:
            completion = await asyncio.wrap_future(self.worker.generate(self.prompt(ids, body, max_tokens, number)))
        scores: TokenScores | None = None
        if echo and logprobs is not None:
            scores = await asyncio.wrap_future(self.worker.score(ids))
        decode = self.worker.tokenizer.decode
        text = completion.text if completion is not None else ""
        choice = {
            "text": (decode(ids, skip_special_tokens=True) + text) if echo else text,
            "finish_reason": completion.finish if completion is not None else "length",
            "logprobs": None if logprobs is None else _logprobs(ids if echo else [], scores, completion),
        }
        return choice, len(completion.ids) if completion is not None else 0


class _Chats(_Endpoint):
    async def post(self, request: web.Request) -> web.Response:
        body = await self.body(request)
        tokenizer = self.worker.tokenizer
        if not tokenizer.chat_template:
            raise ModelError("The model's tokenizer has no chat template. Ask for /v1/completions.")
        ids = tokenizer.encode_chat(_messages(body.get("messages")))
        remaining = self.worker.max_length - len(ids)
        name = "max_completion_tokens" if body.get("max_completion_tokens") else "max_tokens"
        max_tokens = int(_number(body, name, max(remaining, 1)))
        completion = await asyncio.wrap_future(self.worker.generate(self.prompt(ids, body, max_tokens, 0)))
        message = {"role": "assistant", "content": completion.text}
        return web.json_response(
            {
                "id": f"chatcmpl-{uuid.uuid4().hex}",
                "object": "chat.completion",
                "created": int(time.time()),
                "model": self.name,
                "choices": [{"index": 0, "message": message, "finish_reason": completion.finish}],
                "usage": _usage(len(ids), len(completion.ids)),
            }
        )


def _prompts(given: Any) -> list[str | list[int]]:
    """OpenAI's four forms: a text, texts, tokens, lists of tokens. Raises ModelError."""
    if isinstance(given, str):
        return [given]
    if isinstance(given, list) and given:
        if all(isinstance(token, int) for token in given):
            return [given]
        if all(isinstance(prompt, str) or (isinstance(prompt, list) and prompt) for prompt in given):
            return given
    raise ModelError(f"prompt is {str(given)[:80]!r}, expected a text, a list of texts, or lists of tokens.")


def _messages(given: Any) -> list[dict[str, Any]]:
    """The messages of a conversation. Raises ModelError."""
    if not isinstance(given, list) or not given or not all(isinstance(message, dict) for message in given):
        raise ModelError(f"messages is {str(given)[:80]!r}, expected a list of objects with 'role' and 'content'.")
    return given


def _number(body: Mapping[str, Any], name: str, default: float) -> float:
    """A field of a request, or the default if it is absent or null. Raises ModelError for what is no number."""
    number = body.get(name)
    if number is None:
        return default
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ModelError(f"{name} is {number!r}, expected a number.")
    return number


def _logprobs(ids: list[int], scores: TokenScores | None, completion: Completion | None) -> dict[str, Any]:
    """OpenAI's log-probabilities: of the prompt's tokens, if it is echoed, and of the answer's. Of a token's rivals
    the likeliest is given. Tokens are named by their ids, "token_id:7", as with vLLM's return_tokens_as_token_ids."""
    names = [_name(token) for token in ids]
    own: list[float | None] = [None, *scores.logprobs] if scores is not None else []
    top: list[dict[str, float] | None] = [None] if scores is not None else []
    if scores is not None:
        for i, (likeliest, logprob) in enumerate(zip(scores.likeliest, scores.likeliest_logprobs, strict=True)):
            top.append({names[i + 1]: scores.logprobs[i], _name(likeliest): logprob})
    if completion is not None:
        names += [_name(token) for token in completion.ids]
        own += completion.logprobs
        top += [{_name(token): lp} for token, lp in zip(completion.ids, completion.logprobs, strict=True)]
    return {"tokens": names, "token_logprobs": own, "top_logprobs": top}


def _name(token: int) -> str:
    return f"token_id:{token}"


def _usage(prompt: int, completion: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
