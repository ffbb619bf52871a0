"""Contexts that are longer than the window are cut alike by the engine in this process and by a server."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway import Gateway

from marin_assets.inference.engine import JAX, Endpoint, Engine
from marin_assets.inference.jax_model import ModelError
from marin_assets.inference.server import VLLM_ROOM, ModelServer, command_of
from marin_assets.stages.evaluate.lm_eval import LmEvalConfig, evaluate_with_lm_eval
from marin_assets.stages.evaluate.models.server_lm import parts_of
from marin_assets.step.values import unwrap_versioned_value

WINDOW = 64
RELATIVE = 2e-4
"""Nats of a log-likelihood: float32, summed in another order."""
SENTENCE = "the class has a method which takes an argument and returns its name as a string in the module "
TASK = """
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/rows.jsonl}}}}
test_split: test
doc_to_text: "{{{{q}}}}"
{kind}
"""
KINDS = {
    "sums": """output_type: generate_until
doc_to_target: "{{a}}"
generation_kwargs: {max_gen_toks: 6, until: ["."]}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]""",
    "choices": """output_type: multiple_choice
doc_to_choice: ["{{a}}", "{{b}}", " none of the two"]
doc_to_target: 0
metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]""",
    "texts": """output_type: loglikelihood_rolling
doc_to_target: "{{q}}{{q}}"
metric_list: [{metric: bits_per_byte, aggregation: bits_per_byte, higher_is_better: false}]""",
}
Evaluated = tuple[dict[str, Any], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def tasks_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Questions of 10 to 48 words: the last are longer than the window."""
    folder = tmp_path_factory.mktemp("tasks")
    words = (SENTENCE * 9).split()
    questions = [" ".join(words[n : 10 + 3 * n]) for n in range(20)]
    rows = [{"q": question, "a": f" {n}", "b": " of a module of its own"} for n, question in enumerate(questions)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, kind in KINDS.items():
        (folder / f"{name}.yaml").write_text(TASK.format(name=name, kind=kind, folder=folder))
    return str(folder)


@pytest.fixture(scope="module")
def server(model_path: str) -> Iterator[ModelServer]:
    with ModelServer(unwrap_versioned_value(JAX), model_path) as running:
        yield running


@pytest.fixture(scope="module")
def evaluated(
    model_path: str, tasks_path: str, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Engine | Endpoint | None], Evaluated]:
    def evaluate(engine: Engine | Endpoint | None, max_length: int | None = None) -> Evaluated:
        output = tmp_path_factory.mktemp("scores")
        config = LmEvalConfig(
            model_path=model_path,
            output_path=str(output),
            include_path=tasks_path,
            tasks=tuple(KINDS),
            engine=engine,
            max_length=max_length,
        )
        result = evaluate_with_lm_eval(unwrap_versioned_value(config))
        return result, [json.loads(line) for line in (output / "samples.jsonl").read_text().splitlines()]

    return evaluate


@pytest.fixture(scope="module")
def here(evaluated: Callable[..., Evaluated]) -> Evaluated:
    return evaluated(None)


class Bounded(Gateway):
    """Refuses what vLLM refuses: prompts that leave no place for a token in its window."""

    window = WINDOW

    def pass_on(self, method: str, path: str, content: bytes) -> tuple[int, bytes]:
        if method == "POST":
            body = json.loads(content)
            if len(body["prompt"]) + max(body["max_tokens"], 1) > self.window:
                return 400, json.dumps({"error": {"message": "longer than the maximum model length"}}).encode()
            if body.get("echo"):  # the server behind it has the model's window, and vLLM's may be longer
                content = json.dumps({**body, "max_tokens": 0}).encode()
        return super().pass_on(method, path, content)


def test_a_server_cuts_as_the_engine_in_this_process_and_scores_the_same(
    here: Evaluated, evaluated: Callable[..., Evaluated], server: ModelServer
) -> None:
    result, _ = here
    assert result["cut_contexts_by_task"].keys() == {"sums", "choices"}
    assert 5 < result["cut_contexts_by_task"]["choices"] < 20
    with Gateway(server.url) as gateway:
        _require_equal(evaluated(_endpoint(gateway, server)), here)
        lengths = {len(body["prompt"]) for body in gateway.passed}
    assert max(lengths) == WINDOW + 1, "the window, and the last target"


@pytest.mark.long
def test_a_server_that_generates_a_token_behind_each_text_needs_a_longer_window(
    here: Evaluated, evaluated: Callable[..., Evaluated], server: ModelServer
) -> None:
    with Bounded(server.url) as gateway:  # as vLLM is, which a step starts with this window
        gateway.window = WINDOW + VLLM_ROOM
        _require_equal(evaluated(_endpoint(gateway, server)), here)


@pytest.mark.long
def test_what_a_server_cannot_take_is_counted_and_no_token_is_lost(
    here: Evaluated, evaluated: Callable[..., Evaluated], server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    with Bounded(server.url) as gateway, caplog.at_level(logging.WARNING):
        result, rows = evaluated(_endpoint(gateway, server))
    assert {name: result[name] for name in ("cut_contexts", "cut_contexts_by_task")} == {
        name: here[0][name] for name in ("cut_contexts", "cut_contexts_by_task")
    }
    assert result["shortened_texts"] > 0
    assert "the server scores 63 tokens of a text" in caplog.text
    assert f"Serve the model with a window of {WINDOW + 2}, or pass max_length={WINDOW - 2}" in caplog.text
    for row, other in zip(rows, here[1], strict=True):
        for name in {"loglikelihood", "loglikelihoods"} & other.keys():
            assert row[name] == pytest.approx(other[name], rel=0.05), "at most two tokens have a shorter context"
    lower = evaluated(None, WINDOW - 2)
    with Bounded(server.url) as gateway:
        _require_equal(evaluated(_endpoint(gateway, server), WINDOW - 2), lower)


def test_the_parts_of_a_text_score_each_token_once() -> None:
    row = list(range(65))
    assert parts_of(row, 3, 65) == [(row, 3)]
    assert parts_of(row, 3, 63) == [(row[:63], 1), (row[2:], 2)]
    assert parts_of(row, 1, 63) == [(row[2:], 1)]
    assert parts_of(row, 64, 63) == [(row[:63], 62), (row[2:], 2)]


def test_a_window_longer_than_the_servers_is_refused(evaluated: Callable[..., Evaluated], server: ModelServer) -> None:
    with (
        Gateway(server.url) as gateway,
        pytest.raises(ModelError, match=r"max_length is 65, expected at most the serv"),
    ):
        evaluated(_endpoint(gateway, server), WINDOW + 1)


@pytest.mark.parametrize(
    ("config", "engine", "expected"),
    [
        ({"max_position_embeddings": 64, "rope_theta": 1e4}, {}, (66, True)),
        ({"max_position_embeddings": 64, "rope_theta": 1e4}, {"max_length": 64}, (66, True)),
        ({"max_position_embeddings": 64, "rope_theta": 1e4}, {"max_length": 32}, (34, False)),
        ({"max_position_embeddings": 64}, {"max_length": 62}, (64, False)),
        (
            {"max_position_embeddings": 64, "rope_parameters": {"rope_theta": 1e4, "rope_type": "llama3"}},
            {},
            (66, True),
        ),
        ({"max_position_embeddings": 64, "rope_parameters": {"rope_theta": 1e4, "rope_type": "yarn"}}, {}, None),
        ({"max_position_embeddings": 64, "rope_theta": 1e4, "rope_scaling": {"type": "dynamic"}}, {}, None),
        ({"max_position_embeddings": 64}, {}, None),
        ({"n_positions": 64}, {}, None),
        ({"n_positions": 64}, {"max_length": 64}, (64, False)),
        ({"max_position_embeddings": 64, "rope_theta": 1e4}, {"options": ("--max-model-len", "40")}, None),
        ({"max_position_embeddings": 64, "rope_theta": 1e4}, {"max_length": 99}, (99, False)),
    ],
)
def test_vllm_gets_room_for_the_tokens_by_which_it_scores_where_positions_allow(
    config: dict[str, Any], engine: dict[str, Any], expected: tuple[int, bool] | None, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    command = command_of(unwrap_versioned_value(Engine(**engine)), "python", str(tmp_path), "m", 1)
    given = command[: len(command) - len(engine.get("options", ()))]
    if expected is None:
        assert "--max-model-len" not in given
        assert "--hf-overrides" not in given
        return
    length, is_longer = expected
    assert given[given.index("--max-model-len") + 1] == str(length)
    assert ("--hf-overrides" in given) == is_longer
    if is_longer:
        assert json.loads(given[given.index("--hf-overrides") + 1])["max_position_embeddings"] == length


def _endpoint(gateway: Gateway, server: ModelServer) -> Endpoint:
    endpoint: Endpoint = unwrap_versioned_value(Endpoint(url=gateway.url, model=server.name, give_up_s=30.0))
    return endpoint


def _require_equal(found: Evaluated, expected: Evaluated) -> None:
    for name in ("cut_contexts", "cut_contexts_by_task", "shortened_texts"):
        assert found[0].get(name) == expected[0].get(name)
    for row, other in zip(found[1], expected[1], strict=True):
        for name in {"loglikelihood", "loglikelihoods"} & other.keys():
            assert row.pop(name) == pytest.approx(other[name], rel=RELATIVE)
        assert row == {name: other[name] for name in row}
