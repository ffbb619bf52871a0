"""The address at which Inspect has the model: OpenAI's chat completions on this machine, sent on to its servers.

Inspect knows neither the servers, of which there may be several, elsewhere, and which may be started again, nor the
key of an endpoint. Messages become tokens here, by the model's own chat template, as in other stages; what only a
server can do, such as tools, it gets as messages.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from marin_assets.inference.endpoint.answers import choice_of
from marin_assets.inference.engine import RequestError
from marin_resources.step_api.progress import report_step

MODEL = "model"
"""The name by which Inspect calls it."""
CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
USAGE = ("prompt_tokens", "completion_tokens", "total_tokens")
Body = dict[str, Any]
Post = Callable[[str, Mapping[str, Any]], dict[str, Any]]


class Gateway:
    """A server for the `with` block. Requests must have its key."""

    def __init__(self, post: Post, translated: Callable[[Body], tuple[str, Body]]) -> None:
        """`post` sends a request to a path, as ModelServers.post. `translated` gives the path and the body for the
        body of a chat completion."""
        self.key = secrets.token_urlsafe(24)
        self.failure: BaseException | None = None
        """The first error after which the model answers no request."""
        self.failed = threading.Event()
        self.refusal: RequestError | None = None
        """The first refused request."""
        self._post, self._translated = post, translated
        self._answers, self._changing = 0, threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _handler_of(self))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, name="gateway", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, body: Body) -> tuple[int, Body]:
        """The status and the answer to a chat completion."""
        body.pop("model", None)
        try:
            path, translated = self._translated(body)
            answer = as_chat(self._post(path, translated))
        except (RequestError, ValueError) as error:  # of a template, or of the request
            with self._changing:
                self.refusal = self.refusal or RequestError(str(error))
            return 400, _error(error)
        except Exception as error:  # whatever it is, the step raises it
            with self._changing:
                self.failure = self.failure or error
            self.failed.set()
            return 400, _error(error)
        with self._changing:
            self._answers += 1
            report_step(self._answers)
        return 200, answer


def as_chat(answer: Mapping[str, Any]) -> Body:
    """The answer to a chat completion, of one to it or to a completion, with what a server may leave out.

    Without numbers of tokens Inspect would download a tokenizer of OpenAI's to count them; they are 0. Raises
    EngineError for an answer without choices.
    """
    choice_of(answer)
    choices = [
        {
            "index": place,
            "message": {"role": "assistant", "content": choice.get("text")},
            "finish_reason": "stop",
            **{
                name: value for name, value in choice.items() if name not in ("text", "logprobs") or "message" in choice
            },
        }
        for place, choice in enumerate(answer["choices"])
    ]
    return {
        "id": "chat",
        "created": 0,
        **answer,
        "object": "chat.completion",
        "model": MODEL,
        "choices": choices,
        "usage": {**dict.fromkeys(USAGE, 0), **(answer.get("usage") or {})},
    }


def _error(error: BaseException) -> Body:
    return {"error": {"message": str(error), "type": "BadRequestError", "code": 400}}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


def _handler_of(gateway: Gateway) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.headers.get("Authorization") != f"Bearer {gateway.key}":
                self._answer(401, _error(ValueError("The key is another one.")))
            elif self.path != CHAT:
                self._answer(404, _error(ValueError(f"{self.path} is not served, expected {CHAT}.")))
            else:
                self._answer(*gateway.answer(json.loads(content)))

        def _answer(self, status: int, body: Body) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None: ...

    return Handler
