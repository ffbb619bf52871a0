"""Requests to an endpoint: paced, and sent again while that helps. A key of its own is in no error."""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from marin_assets.inference.endpoint.pace import Pace, stated_wait, wait_after
from marin_assets.inference.endpoint.requests_at_once import message_of, send_all
from marin_assets.inference.engine import Endpoint, EngineError, RequestError, check_engine
from marin_resources.types.near_names import expected_one_of

CONNECT_TIMEOUT_S = 30.0
AGAIN = (408, 409, 425, 429)
"""Statuses below 500 that a later try may not have."""
QUOTA = "insufficient_quota"
"""OpenAI's code of a 429 that no wait ends."""
STOPS = 4
"""Stop texts that OpenAI's API takes; further ones are cut from the answer alone."""
V1 = "/v1"

log = logging.getLogger(__name__)


class EndpointClient:
    """Sends requests to an endpoint, from many threads. Use it in a `with` block, which begins with its checks."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Raises EngineError for an address or a number without a meaning, or a key that is not set."""
        check_engine(endpoint)
        self.endpoint = endpoint
        self._key = _key(endpoint)
        self._url = endpoint.url.rstrip("/")
        self._pace = Pace(endpoint.requests_per_minute)
        self._sessions = threading.local()
        self._closed = threading.Event()

    def __enter__(self) -> Self:
        """Check that the server answers and has the model. Raises EngineError."""
        self._require_model()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._closed.set()

    @property
    def shown(self) -> str:
        """The endpoint in an error."""
        return f"The endpoint {self.endpoint.url!r} with the model {self.endpoint.model!r}"

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a POST of `body`, with the model's name in it. `path` begins with /v1, as at ModelServer.

        Blocks. Raises RequestError for a request that the server refuses, EngineError for one without an answer after
        `give_up_s`, or with one that is no JSON.
        """
        given: dict[str, Any] = {"model": self.endpoint.model, **body}
        given = {name: value for name, value in given.items() if value != [] or name not in ("stop", "stop_token_ids")}
        if "stop" in given:
            given["stop"] = given["stop"][:STOPS]
        answer = self._answer("POST", path, given)
        if not answer.ok:
            raise self._refusal(path, answer)
        content = self._content(path, answer)
        if "error" in content and "choices" not in content:
            raise RequestError(f"{self.shown} refused a request to {path}: {self._message(answer)}. Check the model.")
        return content

    def map(
        self, path: str, bodies: Iterable[Mapping[str, Any]], on_answer: Callable[[int, dict[str, Any]], None]
    ) -> None:
        """Post all bodies, as ModelServer.map."""
        send_all(lambda body: self.post(path, body), bodies, on_answer, concurrency=self.endpoint.concurrency)

    def _require_model(self) -> None:
        answer = self._answer("GET", f"{V1}/models", None)
        if answer.status_code in (404, 405, 501):
            log.info("the endpoint %r does not list its models", self.endpoint.url)
            return
        if not answer.ok:
            raise self._refusal(f"{V1}/models", answer)
        listed = self._content(f"{V1}/models", answer).get("data")
        if not isinstance(listed, list):
            raise EngineError(
                f"{self.shown} answered {V1}/models with {self._message(answer)!r:.200}, expected a list 'data' of "
                "models. Check that the address is that of OpenAI's API, which ends with /v1 as a rule."
            )
        names = [str(model["id"]) for model in listed if isinstance(model, dict) and "id" in model]
        if self.endpoint.model not in names:
            raise EngineError(
                f"The endpoint {self.endpoint.url!r} does not serve the model {self.endpoint.model!r}, "
                f"{expected_one_of(self.endpoint.model, names, 'served models')} Correct Endpoint.model."
            )

    def _answer(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        """An answer that a further try would not change. Raises EngineError after `give_up_s` without one."""
        import requests  # late, for its weight

        data = None if body is None else json.dumps(body).encode()
        ends_s = time.monotonic() + self.endpoint.give_up_s
        for tried in itertools.count(1):
            self._wait(self._pace.take())
            left_s = max(ends_s - time.monotonic(), 1.0)
            try:
                answer = self._session().request(
                    method,
                    f"{self._url}{path.removeprefix(V1)}",
                    data=data,
                    headers=_headers(data),
                    timeout=(min(CONNECT_TIMEOUT_S, left_s), left_s),
                    allow_redirects=False,  # the key is for this address
                )
            except requests.RequestException as error:
                broken, stated_s = self._without_key(f"{type(error).__name__}: {error}")[:300], None
            else:
                if answer.status_code < 500 and (answer.status_code not in AGAIN or QUOTA in answer.text):
                    return answer
                broken, stated_s = f"status {answer.status_code}: {self._message(answer)}", stated_wait(answer.headers)
            wait_s = wait_after(tried) if stated_s is None else stated_s
            if time.monotonic() + wait_s > ends_s:
                raise EngineError(
                    f"{self.shown} gave no answer within {self.endpoint.give_up_s:g} s, in {tried} tries. The last: "
                    f"{broken}. Start its server, lower concurrency or requests_per_minute, or raise give_up_s; "
                    "answers so far are kept."
                )
            log.warning("%s: %s; tried again in %.1f s", self.shown, broken, wait_s)
            if stated_s is not None:
                self._pace.hold(stated_s)
            else:
                self._wait(wait_s)
        raise AssertionError("the tries end by themselves")

    def _wait(self, wait_s: float) -> None:
        if self._closed.wait(max(wait_s, 0.0)):
            raise EngineError(f"{self.shown} is not used any more: the step has stopped.")

    def _session(self) -> Any:
        import requests

        if not hasattr(self._sessions, "own"):
            self._sessions.own = requests.Session()
            self._sessions.own.auth = self._with_key  # also where a .netrc has another for the host
        return self._sessions.own

    def _with_key(self, request: Any) -> Any:
        if self._key:
            request.headers["Authorization"] = f"Bearer {self._key}"
        return request

    def _content(self, path: str, answer: Any) -> dict[str, Any]:
        try:
            content = answer.json()
        except ValueError:
            content = None
        if not isinstance(content, dict):
            raise EngineError(
                f"{self.shown} answered {path} with {self._without_key(answer.text)[:200]!r}, expected a JSON object. "
                "Check that the address is that of OpenAI's API, which ends with /v1 as a rule."
            )
        return content

    def _refusal(self, path: str, answer: Any) -> RequestError:
        """The sentence for a request that no further try would change."""
        variable, status = self.endpoint.key_variable, answer.status_code
        if status in (401, 403):
            remedy = f"Set {variable} to a key that is valid there." if variable else KEYLESS
        elif status == 404:
            remedy = f"Check that the server has {path}, and the name of the model."
        elif 300 <= status < 400:
            remedy = f"It leads to {answer.headers.get('Location')!r}: write that address."
        elif status == 429:
            remedy = "Its quota is used up: raise it, or pass the key of another account."
        else:
            remedy = "Change what it names: the settings, or the length of the prompts."
        return RequestError(
            f"{self.shown} refused a request to {path} (status {status}: {self._message(answer)}). {remedy}"
        )

    def _message(self, answer: Any) -> str:
        return self._without_key(message_of(answer)).strip().rstrip(".")

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "<key>") if self._key else text


KEYLESS = "Pass Endpoint(key_variable=…), the name of an environment variable that has the key."


def _headers(data: bytes | None) -> dict[str, str]:
    """With a name of the request, by which a server that knows such names answers a repeated one once."""
    if data is None:
        return {}
    return {"Content-Type": "application/json", "Idempotency-Key": hashlib.sha256(data).hexdigest()}


def _key(endpoint: Endpoint) -> str:
    """The key of an endpoint, empty if it has none. Raises EngineError, without the key, for one that is not set or
    that HTTP cannot send."""
    if endpoint.key_variable is None:
        return ""
    key = os.environ.get(endpoint.key_variable, "").strip()
    if not key or not key.isascii() or not key.isprintable():
        problem = "has letters that no key has" if key else "is not set"
        raise EngineError(
            f"The endpoint {endpoint.url!r} needs the key in the environment variable {endpoint.key_variable!r}, which "
            f"{problem}. Set it where the step runs, and name it in the step's env."
        )
    return key
