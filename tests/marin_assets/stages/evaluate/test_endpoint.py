"""An evaluation of a model behind the address of a server that runs already: here the JAX server, started apart, behind
a gateway that fails as gateways do."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from gateway import Gateway
from running import wait_until

from marin_assets import output_path_of
from marin_assets.defaults import default_checkpoint_evals, default_download, default_endpoint_eval, default_eval
from marin_assets.documents import read_documents
from marin_assets.inference.endpoint import pace
from marin_assets.inference.endpoint.requests_at_once import send_all
from marin_assets.inference.engine import JAX, Endpoint, EngineError, RequestError
from marin_assets.inference.journal import FOLDER
from marin_assets.inference.server import ModelServer
from marin_assets.stages.evaluate.lm_eval import EvaluationError, HarnessOptions, LmEvalConfig, evaluate_with_lm_eval
from marin_assets.stages.generate.generate_from_documents import GenerateConfig, generate_from_documents
from marin_assets.step.graph import build_graph
from marin_assets.step.partitions.sets import dynamic
from marin_assets.step.values import unwrap_versioned_value, versioned
from marin_resources.wire.config_json import decode, encode

KEY = "sk-the-key-of-a-test-1234"
RELATIVE = 2e-4
"""Nats of a log-likelihood: float32, summed in another order."""
TASK = """
task: {name}
{kind}
doc_to_text: "{{{{q}}}}"
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/rows.jsonl}}}}
test_split: test
"""
SUMS = """output_type: generate_until
doc_to_target: "{{a}}"
generation_kwargs: {max_gen_toks: 6, until: [".", "1", "2", "3", "x"]}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]"""
DRAWN = SUMS.replace("{max_gen", "{do_sample: true, temperature: 1.5, top_k: 50, max_gen") + "\nrepeats: 3"
CHOICES = """output_type: multiple_choice
doc_to_choice: ["{{a}}", "{{b}}", "none of the two"]
doc_to_target: 0
metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]"""


@pytest.fixture(scope="module")
def tasks_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("tasks")
    rows = [{"q": f"{n} + {n} is" + " really" * (n % 7), "a": str(2 * n), "b": str(3 * n)} for n in range(12)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, kind in (("sums", SUMS), ("drawn", DRAWN), ("choices", CHOICES)):
        (folder / f"{name}.yaml").write_text(TASK.format(name=name, kind=kind, folder=folder))
    return str(folder)


@pytest.fixture(scope="module")
def server(model_path: str) -> Iterator[ModelServer]:
    with ModelServer(unwrap_versioned_value(JAX), model_path) as running:
        yield running


@pytest.fixture
def gateway(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    monkeypatch.setenv("GATEWAY_KEY", f"{KEY}\n")
    with Gateway(server.url, key=KEY) as running:
        yield running


@pytest.fixture
def endpoint(gateway: Gateway, server: ModelServer) -> Endpoint:
    return endpoint_of(gateway, server)


def endpoint_of(gateway: Gateway, server: ModelServer, **fields: Any) -> Endpoint:
    given: dict[str, Any] = {"key_variable": "GATEWAY_KEY", "give_up_s": 30.0, "concurrency": 4, **fields}
    made: Endpoint = unwrap_versioned_value(Endpoint(url=gateway.url, **{"model": server.name, **given}))
    return made


def config_of(model_path: str | None, tasks_path: str, output: Path, **fields: Any) -> LmEvalConfig:
    given: dict[str, Any] = {"tasks": ("sums", "choices"), "include_path": tasks_path, **fields}
    config: LmEvalConfig = unwrap_versioned_value(LmEvalConfig(model_path=model_path, output_path=str(output), **given))
    return config


def rows_of(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (output / "samples.jsonl").read_text().splitlines()]


def require_equal(output: Path, expected: Path) -> None:
    for row, other in zip(rows_of(output), rows_of(expected), strict=True):
        if "loglikelihoods" in other:
            assert row.pop("loglikelihoods") == pytest.approx(other.pop("loglikelihoods"), rel=RELATIVE)
        assert row == other


@pytest.fixture(scope="module")
def here(model_path: str, tasks_path: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of the evaluation by the JAX model in this process."""
    output = tmp_path_factory.mktemp("here")
    evaluate_with_lm_eval(config_of(model_path, tasks_path, output))
    return output


def test_the_scores_are_those_of_the_engine_in_this_process_however_the_gateway_fails(
    gateway: Gateway,
    endpoint: Endpoint,
    model_path: str,
    tasks_path: str,
    here: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    gateway.failures = ["429", "", "503", "", "", "drop", "", "", "429", "", "", "500"]
    with caplog.at_level(logging.DEBUG):
        evaluate_with_lm_eval(config_of(model_path, tasks_path, tmp_path, engine=endpoint))
    require_equal(tmp_path, here)
    paid = Counter(json.dumps(body) for body in gateway.passed)
    assert set(paid.values()) == {1}, "no request got to the server twice"
    assert len(paid) == 1 + 12 + 36, "the probe, and each request"
    assert 1 < gateway.most_at_once <= 4
    assert all(len(body.get("stop", [])) <= 4 for body in gateway.passed)
    assert "status 429: a 429 of the gateway" in caplog.text
    assert KEY not in caplog.text
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


@pytest.mark.long  # a process that imports and is killed
def test_a_killed_evaluation_resumes_and_sends_no_answered_request_again(
    gateway: Gateway, server: ModelServer, model_path: str, tasks_path: str, here: Path, tmp_path: Path
) -> None:
    config = config_of(
        model_path, tasks_path, tmp_path, engine=endpoint_of(gateway, server, concurrency=1), save_every_s=0.0
    )
    script = (
        "import json, sys\nfrom marin_assets.stages.evaluate.lm_eval import evaluate_with_lm_eval\n"
        "from marin_resources.wire.config_json import decode\nevaluate_with_lm_eval(decode(json.loads(sys.argv[1])))"
    )
    gateway.stops_after = 21
    with subprocess.Popen([sys.executable, "-c", script, json.dumps(encode(config))]) as process:
        wait_until(lambda: _kept(tmp_path) == 20, "20 answers", timeout_s=120)  # and the probe
        process.kill()
    gateway.stops_after = None
    before, gateway.passed = [json.dumps(body) for body in gateway.passed], []
    with Gateway(gateway.upstream, key=KEY) as moved:  # its address is not in the version
        evaluate_with_lm_eval(
            config_of(model_path, tasks_path, tmp_path, engine=endpoint_of(moved, server), save_every_s=0.0)
        )
        after = [json.dumps(body) for body in moved.passed]
    assert len(after) == 1 + 48 - 20
    assert len(set(before) & set(after)) == 1, "the probe alone is sent again"
    require_equal(tmp_path, here)


def _kept(output: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in output.glob(f"{FOLDER}/*/[!.]*.jsonl"))


def test_without_an_export_texts_are_generated_and_given_answers_are_not_scored(
    gateway: Gateway, endpoint: Endpoint, tasks_path: str, here: Path, tmp_path: Path
) -> None:
    evaluate_with_lm_eval(config_of(None, tasks_path, tmp_path, tasks=("sums",), engine=endpoint))
    expected = {row["doc_id"]: row["generated"] for row in rows_of(here) if row["task"] == "sums"}
    assert {row["doc_id"]: row["generated"] for row in rows_of(tmp_path)} == expected
    assert all(isinstance(body["prompt"], str) for body in gateway.passed)
    gateway.passed = []
    with pytest.raises(EvaluationError, match=r"Task 'choices': It scores given answers .* takes the tokenizer"):
        evaluate_with_lm_eval(config_of(None, tasks_path, tmp_path / "b", engine=endpoint))
    assert gateway.passed == []


@pytest.mark.long
@pytest.mark.parametrize("reads", ["tokens", "texts"])
def test_sampled_answers_are_those_of_this_process_and_settings_that_the_server_refuses_are_a_sentence(
    gateway: Gateway, endpoint: Endpoint, model_path: str, tasks_path: str, tmp_path: Path, reads: str
) -> None:
    folder, length = (model_path, 62) if reads == "tokens" else (None, None)
    fields: dict[str, Any] = {"tasks": ("drawn",), "max_length": length}
    evaluate_with_lm_eval(config_of(folder, tasks_path, tmp_path / "there", engine=endpoint, **fields))
    assert len({body["seed"] for body in gateway.passed[1:]}) == 36
    assert all(body["temperature"] == 1.5 and body["top_k"] == 50 for body in gateway.passed)
    evaluate_with_lm_eval(config_of(model_path, tasks_path, tmp_path / "here", tasks=("drawn",), max_length=62))
    require_equal(tmp_path / "there", tmp_path / "here")
    gateway.failures = ["400"]
    gateway.passed = []
    with pytest.raises(
        EvaluationError, match=r"Task 'drawn': A task generates with temperature=1.5, top_k=50. The end"
    ):
        evaluate_with_lm_eval(config_of(folder, tasks_path, tmp_path / "refused", engine=endpoint, **fields))
    assert gateway.passed == []


def test_a_chat_template_without_an_export_is_the_servers(
    gateway: Gateway, endpoint: Endpoint, tasks_path: str, tmp_path: Path
) -> None:
    answer = {"choices": [{"message": {"role": "assistant", "content": "4. And so on"}, "finish_reason": "stop"}]}
    gateway.answer = lambda path, content: json.dumps(answer).encode()
    options = HarnessOptions(apply_chat_template=True, system_instruction="Be short.", fewshot_as_multiturn=True)
    config = config_of(None, tasks_path, tmp_path, tasks=("sums",), num_fewshot=1, engine=endpoint, options=options)
    evaluate_with_lm_eval(config)
    assert {row["generated"] for row in rows_of(tmp_path)} == {"4"}
    for body in gateway.passed:
        assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"<html>hello</html>", "expected a JSON object"),
        (b"[]", "expected a JSON object"),
        (b'{"id": "x"}', "expected an object with a list 'choices'"),
        (b'{"choices": [{"text": "hello", "logprobs": null}]}', "expected 'logprobs' of the echoed prompt"),
        (
            b'{"choices": [{"text": "", "logprobs": {"token_logprobs": [-1.0], "top_logprobs": [{"a": -1.0}]}}]}',
            "expected log-probabilities of the ",
        ),
        (b'{"error": {"message": "overloaded"}}', "overloaded"),
    ],
)
def test_a_server_that_cannot_score_is_refused_before_the_first_question(
    answer: bytes, says: str, gateway: Gateway, endpoint: Endpoint, model_path: str, tasks_path: str, tmp_path: Path
) -> None:
    gateway.answer = lambda path, content: answer
    with pytest.raises(EvaluationError) as refused:
        evaluate_with_lm_eval(config_of(model_path, tasks_path, tmp_path, engine=endpoint))
    assert "Task 'choices': The endpoint 'http://127.0.0.1" in str(refused.value)
    assert "takes /v1/completions with echo and logprobs" in str(refused.value)
    assert says in str(refused.value)
    assert len(gateway.passed) == 1


def test_a_server_of_another_tokenizer_is_refused(
    gateway: Gateway, endpoint: Endpoint, model_path: str, tasks_path: str, tmp_path: Path
) -> None:
    gateway.answer = lambda path, content: content.replace(b"The sky is blue", b"Rab oof xi la du")
    with pytest.raises(EvaluationError, match="its tokenizer is not that of the export"):
        evaluate_with_lm_eval(config_of(model_path, tasks_path, tmp_path, engine=endpoint))


def test_a_wrong_model_or_key_is_one_sentence_at_once_without_the_key(
    gateway: Gateway,
    server: ModelServer,
    model_path: str,
    tasks_path: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def error_of(kind: type[Exception], **fields: Any) -> str:
        with pytest.raises(kind) as refused:
            evaluate_with_lm_eval(
                config_of(model_path, tasks_path, tmp_path, engine=endpoint_of(gateway, server, **fields))
            )
        return str(refused.value)

    assert f"does not serve the model 'other', expected one of the served models '{server.name}'" in error_of(
        EngineError, model="other"
    )
    assert f"Did you mean '{server.name}'?" in error_of(EngineError, model=server.name + "x")
    assert "(status 401: no such key: None). Pass Endpoint(key_variable=" in error_of(RequestError, key_variable=None)
    monkeypatch.setenv("GATEWAY_KEY", "sk-wrong")
    wrong = error_of(RequestError)
    assert "no such key: Bearer <key>). Set GATEWAY_KEY to a key" in wrong
    assert "sk-wrong" not in wrong
    monkeypatch.setenv("GATEWAY_KEY", "sk-wr\nong")
    assert "has letters that no key has" in (said := error_of(EngineError))
    assert "ong" not in said.replace("wrong", "").replace("longer", "")
    monkeypatch.delenv("GATEWAY_KEY")
    assert "'GATEWAY_KEY', which is not set" in error_of(EngineError)
    assert gateway.passed == []


def test_a_refused_request_is_not_repeated_and_one_without_an_answer_is_given_up(
    gateway: Gateway, server: ModelServer, tasks_path: str, tmp_path: Path
) -> None:
    gateway.failures = ["400"]
    config = config_of(None, tasks_path, tmp_path, tasks=("sums",), engine=endpoint_of(gateway, server, concurrency=1))
    with pytest.raises(RequestError, match=r"\(status 400: a 400 of the gateway\). Change what it names"):
        evaluate_with_lm_eval(config)
    gateway.failures = ["503"] * 1000
    config = config_of(None, tasks_path, tmp_path, tasks=("sums",), engine=endpoint_of(gateway, server, give_up_s=1.5))
    with pytest.raises(EngineError, match=r"gave no answer within 1.5 s, in \d tries. The last: status 503"):
        evaluate_with_lm_eval(config)


def test_documents_are_continued_by_texts_and_by_tokens_alike(
    gateway: Gateway, endpoint: Endpoint, model_path: str, tmp_path: Path
) -> None:
    from marin_assets.documents import Document, shard_name, write_documents

    documents = [Document(id=str(n), text=f"The number {n} is", source="numbers", metadata={}) for n in range(6)]
    write_documents(str(tmp_path / "in" / shard_name(0, 1)), documents)
    texts = {}
    for name, folder in (("tokens", model_path), ("texts", None)):
        config = GenerateConfig(
            model_path=folder,
            documents_path=str(tmp_path / "in"),
            template="{text}",
            max_tokens=5,
            output_path=str(tmp_path / name),
            engine=endpoint,
        )
        counts = generate_from_documents(unwrap_versioned_value(config))
        texts[name] = [document.text for document in read_documents(str(tmp_path / name / shard_name(0, 1)))]
        assert counts["documents"] == 6
        assert counts["prompt_tokens"] > 6
    assert texts["tokens"] == texts["texts"]
    assert len(gateway.passed) == 12


def test_the_version_has_the_models_name_and_not_the_address() -> None:
    def step(**fields: Any) -> Any:
        given = {"url": "https://a.example/v1", "model": "llama", **fields}
        return default_endpoint_eval("llama", Endpoint(**given), ["gsm8k_cot"])

    first = step(key_variable="A_KEY")
    assert first.name == "evaluation/llama"
    assert tuple(first.env) == ("A_KEY",)
    assert _version(step(url="https://b.example/v1", concurrency=2)) == _version(first)
    assert _version(step(model="llama-2")) != _version(first)
    assert _version(step(max_length=versioned(7))) != _version(first)
    assert decode(encode(unwrap_versioned_value(first.config.engine))) == unwrap_versioned_value(first.config.engine)
    raw = default_download("x", "gs://x")
    given = Endpoint(url="https://a.example/v1", model="llama", key_variable="A_KEY")
    assert default_eval(output_path_of(raw), engine=given).name == "evaluation/raw/x/endpoint"
    assert tuple(default_checkpoint_evals(raw, dynamic("points"), engine=given).env) == ("A_KEY",)


def _version(step: Any) -> str:
    return build_graph([step])[step].version.hash


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"url": "models.example/v1"}, "expected the address of OpenAI's API"),
        ({"url": 5}, "expected the address of OpenAI's API"),
        ({"url": "https://me:secret@models.example/v1"}, "with a user, a password"),
        ({"url": "https://models.example/v1?key=secret"}, "a query or a fragment"),
        ({"model": " "}, "expected the"),
        ({"key_variable": "sk-secret"}, "that no environment variable can be called"),
        ({"concurrency": 0}, "concurrency=0"),
        ({"requests_per_minute": -1}, "requests_per_minute=-1"),
        ({"give_up_s": float("nan")}, "give_up_s=nan"),
    ],
)
def test_an_endpoint_without_a_meaning_is_refused_where_it_is_written(fields: dict[str, Any], says: str) -> None:
    given: dict[str, Any] = {"url": "https://models.example/v1", "model": "llama", **fields}
    with pytest.raises(EngineError) as refused:
        default_endpoint_eval("llama", Endpoint(**given), ["gsm8k_cot"])
    assert says in str(refused.value)
    assert "secret" not in str(refused.value)


def test_an_error_ends_the_sending_at_once_and_keeps_what_has_come() -> None:
    came: list[int] = []
    slow = threading.Event()

    def send(body: Mapping[str, Any]) -> dict[str, Any]:
        if body["n"] == 7:
            raise EngineError("no")
        if body["n"] > 7:
            slow.wait()
        return dict(body)

    with pytest.raises(EngineError, match="no"):
        send_all(send, ({"n": n} for n in range(10**9)), lambda number, answer: came.append(answer["n"]), concurrency=3)
    assert sorted(came) == list(range(7))
    slow.set()


def test_requests_are_spaced_and_a_stated_wait_holds_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace.time, "monotonic", lambda: 100.0)
    slots = pace.Pace(requests_per_minute=30)
    assert [slots.take() for _ in range(3)] == [0, 2, 4]
    slots.hold(60.0)
    assert [slots.take() for _ in range(2)] == [60, 62]
    assert [pace.stated_wait({"Retry-After": text}) for text in ("7", "soon", "", "-3")] == [7, None, None, 0]
    assert pace.stated_wait({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    assert (
        3000 < (pace.stated_wait({"Retry-After": format_datetime(datetime.now(UTC) + timedelta(hours=1))}) or 0) < 3601
    )
