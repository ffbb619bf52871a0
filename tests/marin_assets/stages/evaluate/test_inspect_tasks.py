"""Tasks of Inspect by its own package. Its environment is its own: `make test-inspect` makes it, and runs this."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from random_llama import write_random_llama
from running import wait_until
from stand_in_inspect import chat_model

from marin_assets.documents import Document
from marin_assets.inference.engine import JAX, Endpoint
from marin_assets.inference.journal import FOLDER
from marin_assets.inference.own_python import NoPythonError
from marin_assets.stages.evaluate.inspect_tasks.evaluate_with_inspect import evaluate_with_inspect
from marin_assets.stages.evaluate.inspect_tasks.inspect_config import (
    InspectConfig,
    InspectError,
    InspectTask,
    inspect_python,
)
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.wire.config_json import encode

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

TASKS = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import choice, includes
from inspect_ai.solver import generate, multiple_choice, solver


@solver
def breaks_at(place):
    async def solve(state, generate):
        if state.sample_id == place:
            raise KeyError("the page is not there")
        return await generate(state)

    return solve


@task
def sums(count=6):
    samples = [Sample(id=f"s{n}", input=f"{n} plus {n} is", target=str(2 * n)) for n in range(count)]
    return Task(dataset=samples, solver=generate(), scorer=includes(), version=3)


@task
def letters():
    samples = [Sample(input="Which is a vowel?", choices=["a", "b"], target="A")]
    return Task(dataset=samples, solver=multiple_choice(), scorer=choice())


@task
def half_way():
    samples = [Sample(id=n, input=f"{n} plus {n} is", target="4") for n in range(6)]
    return Task(dataset=samples, solver=breaks_at(4), scorer=includes())


@task
def in_docker():
    return Task(dataset=[Sample(input="x", target="y")], solver=generate(), scorer=includes(), sandbox="docker")


@task
def one_in_docker():
    return Task(dataset=[Sample(input="x", target="y", sandbox="docker")], solver=generate(), scorer=includes())


@task
def without_scorer():
    return Task(dataset=[Sample(input="x", target="y")], solver=generate())


@task
def breaks():
    return Task(dataset=nowhere)
"""
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"
STEP = """
import json, sys
from marin_assets.stages.evaluate.inspect_tasks.evaluate_with_inspect import evaluate_with_inspect
from marin_resources.wire.config_json import decode
evaluate_with_inspect(decode(json.loads(sys.argv[1])))
"""


@pytest.fixture(scope="module", autouse=True)
def inspect() -> None:
    try:
        inspect_python()
    except NoPythonError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def tasks_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("tasks")
    (folder / "sums.py").write_text(TASKS)
    (folder / "mistake.py").write_text("from inspect_ai import task\n\n@task\ndef mistake(:\n    pass\n")
    return str(folder)


@pytest.fixture(scope="module")
def chat_path(corpus: list[Document], tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model with a chat template, and a window for the instructions of choices."""
    folder = tmp_path_factory.mktemp("chat")
    path = write_random_llama(folder, [document.text for document in corpus[:200]], 512)
    settings = folder / "tokenizer_config.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "chat_template": TEMPLATE}))
    return path


def config_of(output: Path, tasks: tuple[str | InspectTask, ...], **fields: Any) -> InspectConfig:
    given = {"generation": {"temperature": 0.0, "max_tokens": 8}, **fields}
    made: InspectConfig = unwrap_versioned_value(InspectConfig(output_path=str(output), tasks=tasks, **given))
    return made


def test_a_model_here_answers_the_samples_and_twice_the_same(chat_path: str, tasks_path: str, tmp_path: Path) -> None:
    tasks = ("sums.py@sums", InspectTask("sums.py@sums", {"count": 9}, "more_sums"), "sums.py@letters")
    engine = replace(unwrap_versioned_value(JAX), servers=2, concurrency=4)
    fields = {"model_path": chat_path, "tasks_path": tasks_path}
    result = evaluate_with_inspect(config_of(tmp_path / "one", tasks, engine=engine, **fields))
    assert evaluate_with_inspect(config_of(tmp_path / "two", tasks, **fields)) == result
    assert {task: scores["instances"] for task, scores in result["scores"].items()} == {
        "letters": 1,
        "more_sums": 9,
        "sums": 6,
    }
    for name in ("results.json", "scores.csv", "samples.jsonl", "samples.html"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    rows = [json.loads(line) for line in (tmp_path / "one/samples.jsonl").read_text().splitlines()]
    assert len({row["generated"] for row in rows}) > 1
    assert zipfile.is_zipfile(tmp_path / "one/logs/01-more_sums.eval")


def test_a_model_without_a_template_is_sent_texts_alone(model_path: str, tasks_path: str, tmp_path: Path) -> None:
    fields = {"model_path": model_path, "tasks_path": tasks_path, "max_eval_instances": 2, "epochs": 2}
    with pytest.raises(InspectError, match="no chat template, and Inspect sends messages"):
        evaluate_with_inspect(config_of(tmp_path / "a", ("sums.py@sums",), **fields))
    result = evaluate_with_inspect(config_of(tmp_path / "b", ("sums.py@sums",), as_text=True, **fields))
    assert result["samples"] == 2
    rows = [json.loads(line) for line in (tmp_path / "b/samples.jsonl").read_text().splitlines()]
    assert all("answer 2" in row["extracted"] for row in rows)


def test_a_prompt_that_the_window_does_not_hold_is_a_sentence(model_path: str, tasks_path: str, tmp_path: Path) -> None:
    fields = {"model_path": model_path, "tasks_path": tasks_path, "as_text": True}
    with pytest.raises(InspectError, match=r"'sums\.py@letters' failed: .*The jax server refused a request"):
        evaluate_with_inspect(config_of(tmp_path / "out", ("sums.py@letters",), **fields))
    assert not (tmp_path / "out/scores.csv").exists()


@pytest.mark.parametrize(
    ("task", "says"),
    [
        ("sums.py@sum", "'sums.py@sum' is unknown. Did you mean 'sums.py@sums'?"),
        (
            "sums.py@zzzzzzzzzzzz",
            "'sums.py@zzzzzzzzzzzz' is unknown. Expected one of 'sums.py@breaks', 'sums.py@half_way'",
        ),
        ("nowhere.py@sums", "the folder of tasks has no file 'nowhere.py'"),
        ("inspect_tasks_of_nobody/x", "'inspect_tasks_of_nobody', which Inspect's environment does not have"),
        ("mistake.py@mistake", "cannot be loaded: SyntaxError: invalid syntax (mistake.py, line 4)"),
        ("sums.py@breaks", "cannot be loaded: NameError: name 'nowhere' is not defined (sums.py, line "),
        ("sums.py@in_docker", "'sums.py@in_docker' wants the sandbox 'docker', which a step does not have"),
        ("sums.py@one_in_docker", "wants the sandbox 'docker'"),
        ("sums.py@without_scorer", "'without_scorer' has no scorer"),
        (InspectTask("sums.py@sums", alias="letters"), "Two tasks are called 'letters'"),
        (InspectTask("sums.py@sums", {"cuont": 3}), "'sums.py@sums' has no argument 'cuont'"),
    ],
    ids=str,
)
def test_a_task_that_cannot_run_is_a_sentence_before_the_first_request(
    task: str | InspectTask, says: str, tasks_path: str, tmp_path: Path
) -> None:
    with chat_model() as (url, asked):
        endpoint = Endpoint(url=url, model="theirs")
        with pytest.raises(InspectError) as failed:
            evaluate_with_inspect(
                config_of(tmp_path / "out", ("sums.py@letters", task), tasks_path=tasks_path, engine=endpoint)
            )
    assert says in str(failed.value)
    assert asked == []


@pytest.mark.parametrize(
    ("generation", "says"),
    [({"temprature": 0}, "'temprature' of generation is unknown"), ({"temperature": "hot"}, "'temperature' of")],
)
def test_a_setting_of_generation_that_inspect_does_not_have_is_a_sentence(
    generation: dict[str, Any], says: str, tasks_path: str, tmp_path: Path
) -> None:
    endpoint = Endpoint(url="http://127.0.0.1:1/v1", model="theirs")
    with chat_model() as (url, _), pytest.raises(InspectError, match=says):
        evaluate_with_inspect(
            config_of(
                tmp_path / "out",
                ("sums.py@sums",),
                tasks_path=tasks_path,
                engine=replace(endpoint, url=url),
                generation=generation,
            )
        )


def test_a_task_that_fails_half_way_is_named_and_its_finished_samples_are_not_repeated(
    tasks_path: str, tmp_path: Path
) -> None:
    with chat_model() as (url, asked):
        endpoint = unwrap_versioned_value(Endpoint(url=url, model="theirs", concurrency=1))
        config = config_of(tmp_path / "out", ("sums.py@half_way",), tasks_path=tasks_path, engine=endpoint)
        for _ in range(2):
            with pytest.raises(InspectError, match=r"'sums\.py@half_way' failed: KeyError\('the page is not there'\)"):
                evaluate_with_inspect(config)
    assert not (tmp_path / "out/scores.csv").exists()
    assert sorted(one["messages"][0]["content"] for one in asked) == [f"{n} plus {n} is" for n in range(4)]


def test_samples_of_a_damaged_log_are_run_again(tasks_path: str, tmp_path: Path) -> None:
    with chat_model() as (url, asked):
        endpoint = unwrap_versioned_value(Endpoint(url=url, model="theirs", concurrency=1))
        config = config_of(tmp_path / "out", ("sums.py@half_way",), tasks_path=tasks_path, engine=endpoint)
        for attempt in (1, 2):
            with pytest.raises(InspectError, match="the page is not there"):
                evaluate_with_inspect(config)
            assert len(asked) == 4 * attempt
            for log in (tmp_path / "out" / FOLDER).rglob("*.eval"):
                log.write_bytes(log.read_bytes()[:500])


def test_a_killed_evaluation_continues_after_its_finished_samples(tasks_path: str, tmp_path: Path) -> None:
    with chat_model(pause_s=0.1) as (url, asked):
        endpoint = unwrap_versioned_value(Endpoint(url=url, model="theirs", concurrency=2))
        tasks = ("sums.py@letters", InspectTask("sums.py@sums", {"count": 60}))
        fields = {"tasks_path": tasks_path, "engine": endpoint, "save_every_s": 0.05}
        config = config_of(tmp_path / "out", tasks, **fields)
        process = subprocess.Popen([sys.executable, "-c", STEP, json.dumps(encode(config, "config"))])
        wait_until(lambda: len(asked) >= 20, "some samples to be finished", timeout_s=120)
        process.kill()
        process.wait()
        logs = (tmp_path / "out" / FOLDER).rglob("*.eval")
        finished = sum(name.startswith("samples/") for log in logs for name in zipfile.ZipFile(log).namelist())
        before = len(asked)
        assert 1 < finished <= before
        result = evaluate_with_inspect(config)
    assert result["scores"]["sums"]["instances"] == 60
    assert result["scores"]["letters"]["instances"] == 1
    assert len(asked) <= before + 61 - finished + endpoint.concurrency
    assert not (tmp_path / "out" / FOLDER).exists()
