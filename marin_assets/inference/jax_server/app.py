"""The HTTP side of the server: OpenAI's completions, over a worker."""

from __future__ import annotations

import asyncio
import time
import uuid
from dataclasses import replace
from typing import Any

from aiohttp import web

from marin_assets.inference.completion_fields import COMMON, CompletionFields, read_fields, shown
from marin_assets.inference.decoder import Completion, Prompt
from marin_assets.inference.jax_model import ModelError
from marin_assets.inference.jax_server.worker import Worker
from marin_assets.inference.scorer import TokenScores

CHATS = COMMON | {"messages", "max_completion_tokens"}
"""Fields of /v1/chat/completions."""
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
    except (ValueError, TypeError, RecursionError) as error:  # of its JSON, its values or their types
        return web.json_response({"error": {"message": str(error), "type": "BadRequestError", "code": 400}}, status=400)
    return response


class _Endpoint:
    """The common part of the endpoints: the model and its name."""

    def __init__(self, worker: Worker, name: str) -> None:
        self.worker, self.name = worker, name

    def prompt(self, ids: list[int], fields: CompletionFields, number: int) -> Prompt:
        return Prompt(
            ids=tuple(ids),
            max_tokens=fields.max_tokens,
            stops=fields.stops,
            stop_ids=fields.stop_ids,
            temperature=fields.temperature,
            seed=fields.seed + number,
            sampling=fields.sampling,
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
        body = await request.json()
        fields = read_fields(body, self.name)
        prompts = [
            self.with_bos(prompt) if isinstance(prompt, str) else prompt for prompt in _prompts(body.get("prompt"))
        ]
        for ids in prompts:  # before the first is begun
            self.worker.check(self.prompt(ids, fields, 0)) if fields.generates else self.worker.check_text(ids)
        answers = await asyncio.gather(*(self._answer(ids, fields, i) for i, ids in enumerate(prompts)))
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

    async def _answer(self, ids: list[int], fields: CompletionFields, number: int) -> tuple[dict[str, Any], int]:
        """A choice, and the number of tokens generated for it."""
        completion: Completion | None = None
        if fields.generates:
            completion = await asyncio.wrap_future(self.worker.generate(self.prompt(ids, fields, number)))
        scores: TokenScores | None = None
        if fields.echo and fields.logprobs:
            scores = await asyncio.wrap_future(self.worker.score(ids))
        decode = self.worker.tokenizer.decode
        text = completion.text if completion is not None else ""
        choice = {
            "text": (decode(ids, skip_special_tokens=True) + text) if fields.echo else text,
            "finish_reason": completion.finish if completion is not None else "length",
            "logprobs": _logprobs(ids if fields.echo else [], scores, completion) if fields.logprobs else None,
        }
        return choice, len(completion.ids) if completion is not None else 0


class _Chats(_Endpoint):
    async def post(self, request: web.Request) -> web.Response:
        body = await request.json()
        tokenizer = self.worker.tokenizer
        if not tokenizer.chat_template:
            raise ModelError("The model's tokenizer has no chat template. Ask for /v1/completions.")
        both = isinstance(body, dict) and "max_completion_tokens" in body
        given = {**body, "max_tokens": body["max_completion_tokens"]} if both else body
        fields = read_fields(given, self.name, fields=CHATS)
        ids = tokenizer.encode_chat(_messages(body.get("messages")))
        if given.get("max_tokens") is None:
            fields = replace(fields, max_tokens=max(self.worker.max_length - len(ids), 1))
        completion = await asyncio.wrap_future(self.worker.generate(self.prompt(ids, fields, 0)))
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
    raise ModelError(f"prompt is {shown(given)}, expected a text, a list of texts, or lists of tokens.")


def _messages(given: Any) -> list[dict[str, Any]]:
    """The messages of a conversation. Raises ModelError."""
    if not isinstance(given, list) or not given or not all(isinstance(message, dict) for message in given):
        raise ModelError(f"messages is {shown(given)}, expected a list of objects with 'role' and 'content'.")
    return given


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
