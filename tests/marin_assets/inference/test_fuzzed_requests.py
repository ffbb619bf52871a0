"""No request ends the server of a JAX model, nor changes the answers to others; what it does not serve is refused."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pydoc_data.topics import topics
from typing import Any

import pytest
import requests
from random_llama import write_random_llama

from marin_assets.inference.completion_fields import FieldError, read_fields
from marin_assets.inference.engine import JAX
from marin_assets.inference.server import ModelServer
from marin_assets.step.values import unwrap_versioned_value

REQUESTS = 200
INNOCENT = [{"prompt": [0, 10 + n, 20], "max_tokens": 40, "temperature": 0.7, "seed": n} for n in range(6)]
ODD = [
    *("-1", "1e400", "-1e400", "NaN", "Infinity", "10" * 200, "true", "null", "0", "0.5", "1e-320", "4294967296"),
    *('""', '"x"', '"\\ud800"', '"\\u0000"', "[]", "{}", "[1]", '[""]', '["a", 1]', '["a", ""]', "[[]]", '{"a": 1}'),
    *("[-1]", "[1e400]", "[null]", "[[0, true]]", "[[0], [99999999]]", "[" * 3000 + "]" * 3000),
]
FIELDS = (
    "prompt",
    "max_tokens",
    "temperature",
    "top_p",
    "top_k",
    "seed",
    "stop",
    "stop_token_ids",
    "echo",
    "logprobs",
    "n",
    "user",
    "x",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelServer]:
    model = write_random_llama(tmp_path_factory.mktemp("hf"), list(topics.values())[:50], 64)
    with ModelServer(unwrap_versioned_value(JAX), model) as running:
        yield running


def post(server: ModelServer, body: str, timeout: float = 60) -> requests.Response:
    headers = {"Content-Type": "application/json"}
    return requests.post(f"{server.url}/v1/completions", data=body.encode(), headers=headers, timeout=timeout)


def fuzzed(drawn: random.Random) -> str:
    """The text of a request, most of whose fields are right."""
    values = {
        "prompt": "[0, 5, 6]",
        "max_tokens": "3",
        "temperature": "1",
        "top_p": "0.9",
        "top_k": "5",
        "seed": "1",
        "stop": '["q"]',
    }
    for name in drawn.sample(FIELDS, k=drawn.choice((1, 1, 2, 4))):
        values[name] = drawn.choice(ODD)
    text = ", ".join(f'"{name}": {value}' for name, value in values.items())
    return drawn.choice(["{%s}", "{%s}", "{%s}", "{%s}", "[%s]", "{%s"]) % text


@pytest.mark.long  # a server of JAX
def test_200_fuzzed_requests_end_no_server_and_change_no_other_answer(server: ModelServer) -> None:
    process = server.supervisor
    expected = [post(server, json.dumps(body)).json()["choices"] for body in INNOCENT]
    drawn = random.Random(11)
    with ThreadPoolExecutor(12) as pool:
        innocent = [pool.submit(post, server, json.dumps(body)) for body in INNOCENT]
        odd = [pool.submit(post, server, fuzzed(drawn)) for _ in range(REQUESTS)]
        innocent += [pool.submit(post, server, json.dumps(body)) for body in INNOCENT]
        answers = [future.result() for future in odd]
    assert [future.result().json()["choices"] for future in innocent] == 2 * expected
    assert {answer.status_code for answer in answers} == {200, 400}
    refused = [answer.json()["error"]["message"] for answer in answers if answer.status_code == 400]
    assert len(refused) > REQUESTS / 2
    assert all(refused)
    assert server.supervisor is process


@pytest.mark.long
def test_a_client_that_goes_away_ends_no_server(server: ModelServer) -> None:
    process = server.supervisor
    for _ in range(3):
        with pytest.raises(requests.ReadTimeout):
            post(server, json.dumps({"prompt": [0, 1], "max_tokens": 60}), timeout=0.01)
    assert post(server, json.dumps(INNOCENT[0])).status_code == 200
    assert server.supervisor is process


@pytest.mark.long
def test_without_a_seed_each_sample_differs_and_with_one_none(server: ModelServer) -> None:
    body = {"prompt": [0, 1, 2], "max_tokens": 30, "temperature": 1.0}
    drawn = {post(server, json.dumps(body)).json()["choices"][0]["text"] for _ in range(4)}
    assert len(drawn) == 4
    for seed in (7, -1):
        same = {post(server, json.dumps({**body, "seed": seed})).json()["choices"][0]["text"] for _ in range(3)}
        assert len(same) == 1


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ([1], "The request is [1], expected a JSON object."),
        ({"guided_json": {}}, "The field 'guided_json' is not served here, expected some of ['echo', 'logprobs', "),
        ({"min_p": 0.1}, "min_p is 0.1, and this server has 0 only. Leave it out."),
        ({"n": True}, "n is True, and this server has 1 only. Leave it out."),
        ({"temperature": float("nan")}, "temperature is nan, expected a number from 0 to 100."),
        ({"temperature": 10**400}, "temperature is of 1329 bits, expected a number from 0 to 100."),
        ({"top_p": 0}, "top_p is 0, expected a number above 0 and at most 1."),
        ({"top_p": "0.9"}, "top_p is '0.9', expected a number above 0 and at most 1."),
        ({"top_k": 2.5}, "top_k is 2.5, expected a whole number up to 2147483647, of which 0 and -1 are all tokens."),
        ({"top_k": -2}, "top_k is -2, expected a whole number up to 2147483647"),
        ({"max_tokens": float("inf")}, "max_tokens is inf, expected a whole number."),
        ({"max_tokens": -1}, "max_tokens is -1, expected at least 0."),
        ({"seed": 1.5}, "seed is 1.5, expected a whole number."),
        ({"stop": ["a", ""]}, "stop is ['a', ''], expected a text or a list of texts, none of them empty."),
        ({"stop": 5}, "stop is 5, expected a text or a list of texts, none of them empty."),
        ({"stop_token_ids": [True]}, "stop_token_ids is [True], expected a list of whole numbers."),
        ({"echo": "yes"}, "echo is 'yes', expected true or false."),
        ({"logprobs": 5}, "logprobs is 5, expected 0 or 1: of a token's rivals the likeliest is given."),
    ],
)
def test_a_field_that_is_not_served_is_one_sentence(body: Any, sentence: str) -> None:
    with pytest.raises(FieldError) as refused:
        read_fields(body, "nano")
    assert str(refused.value).startswith(sentence)


def test_neutral_values_and_nulls_are_served() -> None:
    body = {"n": 1, "top_p": 1.0, "stream": False, "stop": None, "logit_bias": {}, "max_tokens": 3.0}
    fields = read_fields(body, "x")
    assert (fields.max_tokens, fields.temperature, fields.stops, fields.echo) == (3, 1.0, (), False)
    assert fields.sampling == ()
    assert read_fields({"top_p": 0.5, "top_k": 7.0, "min_p": 0}, "x").sampling == (("top_k", 7), ("top_p", 0.5))
