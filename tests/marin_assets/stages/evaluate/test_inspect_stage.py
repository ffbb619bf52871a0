"""The stage around Inspect: sentences, rows of logs, the model that it gets. `test_inspect_tasks.py` has Inspect."""

from __future__ import annotations

import csv
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from random_llama import write_tokenizer
from stand_in_inspect import LOGS, chat_model, write_stand_in

from marin_assets.defaults import default_download, default_inspect_eval
from marin_assets.inference.engine import TORCH, Endpoint, RequestError
from marin_assets.inference.journal import FOLDER
from marin_assets.inference.own_python import NoPythonError
from marin_assets.inference.tokenizer import ModelTokenizer
from marin_assets.plan.requirements import missing_requirements_of
from marin_assets.stages.evaluate.inspect_tasks.evaluate_with_inspect import evaluate_with_inspect
from marin_assets.stages.evaluate.inspect_tasks.gateway import Gateway
from marin_assets.stages.evaluate.inspect_tasks.inspect_config import InspectConfig, InspectError, InspectTask
from marin_assets.stages.evaluate.inspect_tasks.kept_logs import KeptLogs
from marin_assets.stages.evaluate.inspect_tasks.log_rows import answer_rows, table_of
from marin_assets.stages.evaluate.inspect_tasks.messages import by_template, by_texts
from marin_assets.stages.report.compare_models import CompareModelsConfig, compare_models
from marin_assets.step.graph import build_graph
from marin_assets.step.values import unwrap_versioned_value, without_versions
from marin_resources.ray_tpu.requirements import describe_missing
from marin_resources.wire.config_json import decode, encode

MODEL = default_download("model", "gs://x")
KEY = "sk-the-key-of-a-test-5678"
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"


@pytest.fixture
def tasks_path(tmp_path: Path) -> str:
    folder = tmp_path / "tasks"
    folder.mkdir()
    (folder / "sums.py").write_text("sums = 1\n")
    return str(folder)


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Endpoint, list[dict[str, Any]]]]:
    monkeypatch.setenv("THEIR_KEY", KEY)
    with chat_model() as (url, asked):
        yield unwrap_versioned_value(Endpoint(url=url, model="theirs", key_variable="THEIR_KEY")), asked


def config_of(tmp_path: Path, folder: str, endpoint: Endpoint, **fields: Any) -> InspectConfig:
    given = {"tasks": ("sums.py@sums", "sums.py@letters"), "tasks_path": folder, "engine": endpoint, **fields}
    made: InspectConfig = unwrap_versioned_value(InspectConfig(output_path=str(tmp_path / "out"), **given))
    return made


def test_scores_answers_and_logs_are_written_where_evaluations_have_them(
    tmp_path: Path, tasks_path: str, endpoint: tuple[Endpoint, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARIN_INSPECT_PYTHON", write_stand_in(tmp_path))
    engine, asked = endpoint
    result = evaluate_with_inspect(config_of(tmp_path, tasks_path, engine, generation={"temperature": 0.0}))
    out = tmp_path / "out"
    assert result["scores"]["letters"]["accuracy"] == 1.0
    assert result["scores"]["sums"]["includes_accuracy_mean_stderr"] == 0.125
    assert (result["tasks"], result["samples"]) == (2, 5)
    rows = list(csv.DictReader((out / "scores.csv").open()))
    assert {row["task"] for row in rows} == {"letters", "sums"}
    assert (rows[0]["metric"], rows[0]["value"], rows[0]["n"], rows[0]["version"]) == ("accuracy", "1.0", "1", "0")
    assert len((out / "samples.jsonl").read_text().splitlines()) == 5
    assert "ANSWER: A" in (out / "samples.html").read_text()
    assert json.loads((out / "results.json").read_text())["inspect_ai"] == "0.3.285"
    assert sorted(path.name for path in (out / "logs").iterdir()) == ["00-letters.eval", "01-sums.eval"]
    assert not (out / FOLDER).exists()
    assert {(one["path"], one["model"], one["key"], one["temperature"]) for one in asked} == {
        ("/v1/chat/completions", "theirs", f"Bearer {KEY}", 0.0)
    }
    assert KEY not in "".join(path.read_text(errors="replace") for path in out.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("problem", "says"),
    [
        ("Task 'sums.py@sums' cannot be loaded: NameError: name 'x' is not defined (sums.py, line 3).", "line 3"),
        ("crash", "Inspect ended with exit code 3. Its last lines:\nKilled by a rule"),
        ("Task 'sums.py@sums' cannot be loaded: OfflineModeIsEnabled: no.", "needs use_hub=True"),
    ],
)
def test_without_scores_it_fails_with_a_sentence_and_keeps_finished_samples(
    problem: str,
    says: str,
    tmp_path: Path,
    tasks_path: str,
    endpoint: tuple[Endpoint, list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MARIN_INSPECT_PYTHON", write_stand_in(tmp_path, problem))
    with pytest.raises(InspectError) as failed:
        evaluate_with_inspect(config_of(tmp_path, tasks_path, endpoint[0]))
    assert says in str(failed.value)
    assert not (tmp_path / "out/scores.csv").exists()
    assert (tmp_path / "out" / FOLDER / "logs/0/x.eval").read_text() == "a log"


def test_a_refused_request_is_in_the_sentence_of_the_task_without_the_key(
    tmp_path: Path, tasks_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARIN_INSPECT_PYTHON", write_stand_in(tmp_path))
    monkeypatch.setenv("THEIR_KEY", KEY)
    with chat_model(status=400) as (url, _):
        endpoint = Endpoint(url=url, model="theirs", key_variable="THEIR_KEY")
        with pytest.raises(InspectError, match=r"'sums\.py@sums' failed: .*the prompt is too long") as failed:
            evaluate_with_inspect(config_of(tmp_path, tasks_path, endpoint))
    assert KEY not in str(failed.value)


def test_an_endpoint_that_gives_no_answer_ends_the_evaluation_and_not_only_a_sample(
    tmp_path: Path, tasks_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARIN_INSPECT_PYTHON", write_stand_in(tmp_path))
    with chat_model(status=503) as (url, _):
        endpoint = unwrap_versioned_value(Endpoint(url=url, model="theirs", give_up_s=0.2))
        with pytest.raises(Exception, match=r"gave no answer within 0\.2 s"):
            evaluate_with_inspect(config_of(tmp_path, tasks_path, endpoint))


def test_files_of_tasks_that_were_changed_after_the_plan_are_refused(
    tmp_path: Path, tasks_path: str, endpoint: tuple[Endpoint, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARIN_INSPECT_PYTHON", write_stand_in(tmp_path))
    step = default_inspect_eval("theirs", ["sums.py@sums"], folder=tasks_path, engine=endpoint[0])
    digest = unwrap_versioned_value(step.config.tasks_digest)
    Path(tasks_path, "sums.py").write_text("sums = 2\n")
    changed = default_inspect_eval("theirs", ["sums.py@sums"], folder=Path(tasks_path), engine=endpoint[0])
    assert unwrap_versioned_value(changed.config.tasks_digest) != digest
    with pytest.raises(InspectError, match="one was changed since"):
        evaluate_with_inspect(config_of(tmp_path, tasks_path, endpoint[0], tasks_digest=digest))


def test_a_metric_has_the_name_of_its_scorer_and_reducer_where_a_task_has_several() -> None:
    sums, letters = json.loads(LOGS.read_text())
    assert [row["metric"] for row in table_of("letters", letters)] == ["accuracy"]
    by_metric = {row["metric"]: row for row in table_of("sums", sums)}
    assert by_metric["includes_accuracy_mean"]["value"] == 0.125
    assert by_metric["includes_accuracy_mean"]["error"] == 0.125
    assert by_metric["letters_mean_max"]["error"] is None  # it has no metric stderr
    assert by_metric["even_accuracy_max"]["version"] == 3
    assert "letters_stderr_mean" not in by_metric


def test_the_mean_of_the_values_of_the_answers_is_the_metric() -> None:
    for label, log in zip(("sums", "letters"), json.loads(LOGS.read_text()), strict=True):
        rows = answer_rows(label, log)
        for row in table_of(label, log):
            if "std" not in row["metric"]:
                values = [answer[row["metric"]] for answer in rows]
                assert sum(values) / len(values) == pytest.approx(row["value"])


def test_an_answer_has_its_question_with_choices_and_the_further_epochs() -> None:
    sums, letters = json.loads(LOGS.read_text())
    (of_letters,) = answer_rows("letters", letters)
    assert of_letters["context"] == "system: Be brief.\n\nuser: Which is a vowel?\n\nA) a\nB) b"
    assert (of_letters["generated"], of_letters["extracted"]) == ("ANSWER: A", {"choice": "A"})
    assert answer_rows("sums", sums)[0]["extracted"]["answer 2"] == "no"


def test_models_are_compared_by_these_scores_and_pairs_of_answers(
    tmp_path: Path, tasks_path: str, endpoint: tuple[Endpoint, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARIN_INSPECT_PYTHON", write_stand_in(tmp_path))
    models = {}
    for name in ("base", "tuned"):
        config = config_of(tmp_path, tasks_path, endpoint[0])
        result = evaluate_with_inspect(dataclasses.replace(config, output_path=str(tmp_path / name)))
        models[name] = str(tmp_path / name)
        (tmp_path / name / ".executor_info").write_text(json.dumps({"name": name, "result": result}))
    config = CompareModelsConfig(models=models, output_path=str(tmp_path / "compared"))
    compared = compare_models(unwrap_versioned_value(config))
    assert (compared["tasks"], compared["better"], compared["worse"]) == (2, 0, 0)
    differences = [json.loads(line) for line in (tmp_path / "compared/differences.jsonl").read_text().splitlines()]
    assert {row["metric"] for row in differences} == {"includes_accuracy_mean"}  # of one question none is known


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"tasks": ()}, "no tasks, expected one at least"),
        ({"tasks": ("sums.py@sums",) * 2}, "'sums.py@sums' twice"),
        ({"tasks": ("../sums.py@sums",)}, "'../sums.py@sums', expected the name of one in the folder"),
        ({"tasks": ("/sums.py",)}, "'/sums.py', expected"),
        ({"tasks_path": None}, "'sums.py@sums' and no folder of tasks"),
        ({"max_eval_instances": 0}, "max_eval_instances=0, expected None or a number from 1"),
        ({"epochs": -1}, "epochs=-1"),
        ({"engine": unwrap_versioned_value(TORCH)}, "no model_path and no Endpoint"),
    ],
)
def test_values_that_no_evaluation_can_have_are_refused(
    fields: dict[str, Any], says: str, tmp_path: Path, tasks_path: str
) -> None:
    endpoint = Endpoint(url="http://127.0.0.1:1/v1", model="theirs")
    with pytest.raises(InspectError) as failed:
        evaluate_with_inspect(config_of(tmp_path, tasks_path, endpoint, **fields))
    assert says in str(failed.value)


def test_a_step_without_a_folder_of_tasks_or_an_endpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InspectError, match="no folder here"):
        default_inspect_eval(MODEL, ["sums.py@sums"], folder=tmp_path / "nowhere")
    with pytest.raises(InspectError, match="got no step and no Endpoint"):
        default_inspect_eval("theirs", ["inspect_evals/gsm8k"])
    with pytest.raises(InspectError, match=r"Step 'evaluation/raw/model/inspect': .*'x' twice"):
        default_inspect_eval(MODEL, ["x", InspectTask("x", {"digits": 3})])


def test_the_name_has_the_engine_and_the_config_crosses_to_a_worker(tasks_path: str) -> None:
    tasks = ["sums.py@sums", InspectTask("sums.py@sums", {"digits": 3}, "sums_3")]
    step = default_inspect_eval(MODEL, tasks, folder=tasks_path, engine=TORCH, generation={"temperature": 0.0})
    assert step.name == "evaluation/raw/model/inspect/torch"
    endpoint = Endpoint(url="http://127.0.0.1:1/v1", model="theirs")
    of_theirs = default_inspect_eval("theirs", tasks, folder=tasks_path, engine=endpoint)
    assert of_theirs.name == "evaluation/theirs/inspect"
    config = dataclasses.replace(without_versions(of_theirs.config), output_path="/out")
    assert decode(encode(config, "config")) == config


def test_the_plan_has_the_command_that_makes_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MARIN_INSPECT_PYTHON", "/no/python")
    graph = build_graph([default_inspect_eval(MODEL, ["inspect_evals/gsm8k"])])
    (sentence,) = describe_missing(missing_requirements_of(graph, str(tmp_path)))
    assert sentence.startswith(
        "Step 'evaluation/raw/model/inspect' needs Inspect, which this machine does not have. Inspect needs "
        "inspect_ai, openai, and '/no/python' cannot be run"
    )
    assert sentence.endswith(
        "Set MARIN_INSPECT_PYTHON to the Python of an environment with them. Make one: make .venv-inspect"
    )


def test_a_step_without_the_environment_ends_before_the_model_is_read(
    tmp_path: Path, tasks_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARIN_INSPECT_PYTHON", "/no/python")
    with pytest.raises(NoPythonError, match=r"make \.venv-inspect"):
        evaluate_with_inspect(config_of(tmp_path, tasks_path, Endpoint(url="http://127.0.0.1:1/v1", model="theirs")))


def test_logs_of_another_model_or_of_other_tasks_are_not_taken(any_prefix: str, tmp_path: Path) -> None:
    def kept(made_by: str) -> KeptLogs:
        return KeptLogs(str(tmp_path / str(len(list(tmp_path.iterdir())))), any_prefix, made_by=made_by)

    def logs(of: KeptLogs) -> dict[str, str]:
        return {path.name: path.read_text() for path in Path(of.folder).rglob("*.eval")}

    first = kept("a")
    Path(first.folder, "0").mkdir()
    Path(first.folder, "0/x.eval").write_text("1")
    Path(first.folder, "0/gone.eval").write_text("1")
    first.save()
    Path(first.folder, "0/x.eval").write_text("1 and 2")
    Path(first.folder, "0/gone.eval").unlink()
    first.save()
    again = kept("a")
    assert logs(again) == {"x.eval": "1 and 2"}
    assert logs(kept("b")) == {}
    assert logs(kept("a")) == {}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> ModelTokenizer:
    folder = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(folder, ["system: user: assistant: 2 plus 2 is 4"] * 9)
    settings = folder / "tokenizer_config.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "chat_template": TEMPLATE}))
    (folder / "config.json").write_text(json.dumps({"model_type": "llama"}))
    return ModelTokenizer(str(folder))


@pytest.mark.long  # imports jax
def test_messages_become_tokens_by_the_template_and_tools_stay_messages(tokenizer: ModelTokenizer) -> None:
    messages = [{"role": "user", "content": "2 plus <|eos|> is"}]
    translated = by_template(tokenizer, 128)
    path, body = translated({"messages": messages, "max_completion_tokens": 5, "temperature": 0.0})
    assert (path, body["max_tokens"], body["temperature"]) == ("/v1/completions", 5, 0.0)
    assert body["prompt"] == tokenizer.encode_chat(messages)
    assert tokenizer.eos_token_id not in body["prompt"]
    _, without_limit = translated({"messages": messages})
    assert without_limit["max_tokens"] == 128 - len(body["prompt"])
    with_tools = {"messages": messages, "tools": [{"type": "function"}]}
    assert translated(with_tools) == ("/v1/chat/completions", with_tools)
    of_text = by_texts(tokenizer, 128)({"messages": messages, "max_tokens": 5})
    assert of_text[1]["prompt"] == [tokenizer.bos_token_id, *tokenizer.encode("2 plus <|eos|> is")]


def test_texts_alone_are_sent_to_an_endpoint_and_tools_are_refused() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2 plus 2 is"}]
    path, body = by_texts(None, None)({"messages": messages, "max_tokens": 5})
    assert (path, body) == ("/v1/completions", {"max_tokens": 5, "prompt": "Be brief.\n\n2 plus 2 is"})
    with pytest.raises(ValueError, match="sends tools or pictures, expected texts"):
        by_texts(None, None)({"messages": messages, "tools": []})


def test_the_gateway_answers_as_a_chat_whoever_has_its_key() -> None:
    def post(path: str, body: Any) -> dict[str, Any]:
        if body["prompt"] == "refused":
            raise RequestError("The prompt does not fit.")
        return {"choices": [{"text": "4", "finish_reason": "stop"}]}

    with Gateway(post, by_texts(None, None)) as gateway:

        def asked(content: Any, key: str = gateway.key, path: str = "chat/completions") -> requests.Response:
            body = {"model": "model", "messages": [{"role": "user", "content": content}]}
            return requests.post(
                f"{gateway.url}/{path}", json=body, headers={"Authorization": f"Bearer {key}"}, timeout=9
            )

        assert asked("2 plus 2 is").json()["choices"][0]["message"] == {"role": "assistant", "content": "4"}
        assert (asked("x", key="other").status_code, asked("x", path="completions").status_code) == (401, 404)
        assert asked("refused").json()["error"]["message"] == "The prompt does not fit."
        assert asked([{"type": "image_url"}]).status_code == 400
        assert str(gateway.refusal) == "The prompt does not fit."
        assert not gateway.failed.is_set()
