"""Evaluate a model on tasks of Inspect, the framework of the UK AI Security Institute, by its own package.

In:  the folder of a Hugging Face export, or an endpoint; a folder with files of tasks, or a package of them that is
     installed in Inspect's environment.
Out: `results.json`, the metrics of each task as Inspect has them; `scores.csv`, a row for each; `samples.jsonl`, the
     model's answer to each sample; `samples.html`, to read them; `plots/scores.png`; `logs/`, Inspect's own logs, for
     `inspect view`.

Inspect runs in a process of its own, and has the model at an address of this one (`gateway.py`). Samples are saved
below `.marin/unfinished` as they are finished: a killed evaluation resumes after them.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from marin_assets.documents.scores import as_csv
from marin_assets.inference.endpoint.client import EndpointClient
from marin_assets.inference.engine import JAX, Endpoint, Engine, check_engine, reads_weights
from marin_assets.inference.local_copy import WEIGHTS, copy_to_local
from marin_assets.inference.model_servers import ModelServers
from marin_assets.inference.own_python import executable
from marin_assets.inference.tokenizer import ModelTokenizer
from marin_assets.stages.evaluate.inspect_tasks.gateway import MODEL, Gateway
from marin_assets.stages.evaluate.inspect_tasks.inspect_config import (
    InspectConfig,
    InspectError,
    InspectTask,
    check_inspect,
    digest_of,
    inspect_python,
    inspect_tasks,
)
from marin_assets.stages.evaluate.inspect_tasks.kept_logs import KeptLogs
from marin_assets.stages.evaluate.inspect_tasks.log_rows import answer_rows, scores_of, table_of
from marin_assets.stages.evaluate.inspect_tasks.messages import as_messages, by_template, by_texts
from marin_assets.stages.evaluate.jsonl import write_jsonl
from marin_assets.stages.evaluate.sample_page import page_of_samples
from marin_assets.stages.evaluate.scores import bars_of, draw_scores
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.shards.file_shards import folder_state
from marin_resources.ray_tpu.worker.managed_process import ManagedProcess
from marin_resources.storage.files import exists, write_bytes
from marin_resources.storage.paths import join

KINDS = ("inspect",)
PROGRAM = Path(__file__).parent / "inspect_program.py"
POLL_S = 0.2
SHOWN_LINES = 15
OFFLINE = re.compile(r"offline|connection|resolve", re.IGNORECASE)
HUB = "A task whose data are on the Hugging Face hub needs use_hub=True."
__all__ = ["InspectConfig", "InspectError", "InspectTask", "evaluate_with_inspect"]

log = logging.getLogger(__name__)


def evaluate_with_inspect(config: InspectConfig) -> dict[str, Any]:
    """Evaluate a model with Inspect.

    Returns the scores by task, and the numbers of tasks and samples. Raises NoPythonError without Inspect's
    environment, InspectError for a task that is unknown, wants a sandbox, cannot be loaded, fails or has no score,
    EngineError for an engine that this machine does not have.
    """
    check_inspect(config)
    python = inspect_python()
    engine = unwrap_versioned_value(JAX) if config.engine is None else config.engine
    check_engine(engine)
    with tempfile.TemporaryDirectory(prefix="inspect-") as folder:
        tasks = _task_files(config, f"{folder}/tasks")
        kept = KeptLogs(f"{folder}/logs", config.output_path, made_by=_made_by(config, tasks))
        with _model(config, engine, f"{folder}/model") as gateway:
            at_once = engine.concurrency * getattr(engine, "servers", 1)
            answer = _run(config, python, folder, gateway, kept, at_once)
        return _write(config, answer, kept)


def _task_files(config: InspectConfig, folder: str) -> str:
    """Copy the files of tasks to a local folder, and return their digest."""
    Path(folder).mkdir()
    if config.tasks_path is not None:
        copy_to_local(config.tasks_path, folder)
    digest = digest_of(folder)
    if config.tasks_digest not in (None, digest):
        raise InspectError(
            f"The files in {config.tasks_path!r} are not those that the step was planned with: one was changed since. "
            "Plan the step again."
        )
    return digest


def _made_by(config: InspectConfig, tasks: str) -> str:
    """The digest of what samples depend on: the model, its engine, the tasks and their settings."""
    model = folder_state(config.model_path).stamp if config.model_path else ""
    engine = config.engine
    if isinstance(engine, Endpoint):
        by: Any = (engine.kind, engine.model)  # at any address
    else:  # on any number of servers
        by = engine and (engine.kind, engine.dtype, engine.max_length, engine.options)
    settings = (config.tasks, config.max_eval_instances, config.epochs, sorted(config.generation.items()))
    return hashlib.sha256(f"{model} {by!r} {tasks} {settings!r} {config.as_text}".encode()).hexdigest()


@contextmanager
def _model(config: InspectConfig, engine: Engine | Endpoint, folder: str) -> Iterator[Gateway]:
    """The address of the model, whose servers end with the block."""
    from marin_assets.inference.generator import window_of

    if isinstance(engine, Endpoint):
        translated = by_texts(None, None) if config.as_text else as_messages
        with EndpointClient(engine) as client, Gateway(client.post, translated) as gateway:
            yield gateway
        return
    assert config.model_path is not None  # `check_inspect` refuses others without an endpoint
    if not exists(join(config.model_path, "config.json")):
        raise InspectError(
            f"{config.model_path!r} has no 'config.json', expected the folder of a Hugging Face export. Pass for "
            "example 'hf' below a training step's output."
        )
    copy_to_local(config.model_path, folder, but=() if reads_weights(engine) else WEIGHTS)
    tokenizer, window = ModelTokenizer(folder), engine.max_length or window_of(folder)
    if not config.as_text and not tokenizer.chat_template:
        raise InspectError(
            f"The tokenizer at {config.model_path!r} has no chat template, and Inspect sends messages. Pass a model "
            "that was trained on conversations, or as_text=True, which sends their texts alone."
        )
    translated = by_texts(tokenizer, window) if config.as_text else by_template(tokenizer, window)
    with ModelServers(engine, folder, config.model_path) as servers, Gateway(servers.post, translated) as gateway:
        yield gateway


def _run(
    config: InspectConfig, python: str, folder: str, gateway: Gateway, kept: KeptLogs, at_once: int
) -> dict[str, Any]:
    """Run Inspect to its end, and return its answer (see `inspect_program.py`)."""
    request = {
        "tasks": [{"name": task.name, "args": dict(task.args), "alias": task.alias} for task in inspect_tasks(config)],
        "folder": f"{folder}/tasks",
        "logs": kept.folder,
        "model": f"openai-api/marin/{MODEL}",
        "url": gateway.url,
        "limit": config.max_eval_instances,
        "epochs": config.epochs,
        "at_once": at_once,
        "generation": dict(config.generation),
    }
    asked, answered = Path(folder, "request.json"), Path(folder, "answer.json")
    asked.write_text(json.dumps(request))
    process = ManagedProcess(
        [executable(python), str(PROGRAM), str(asked), str(answered)],
        env=_environment(config, folder, gateway.key),
        on_line=partial(log.info, "inspect: %s"),
    )
    try:
        while not process.ended.wait(POLL_S) and not gateway.failed.is_set():
            kept.save(every_s=config.save_every_s)
    finally:
        process.stop()
        kept.save()
    if gateway.failure is not None:
        raise gateway.failure
    if not answered.exists():
        last = "\n".join(list(process.last_lines)[-SHOWN_LINES:])
        raise InspectError(f"Inspect ended with exit code {process.exit_code}. Its last lines:\n{last}")
    answer: dict[str, Any] = json.loads(answered.read_text())
    if "error" in answer:
        refused = f" The first refused request: {gateway.refusal}" if gateway.refusal is not None else ""
        offline = "" if config.use_hub or not OFFLINE.search(answer["error"]) else f" {HUB}"
        raise InspectError(f"{answer['error']}{refused}{offline}")
    return answer


def _environment(config: InspectConfig, folder: str, key: str) -> dict[str, str]:
    """Variables of Inspect's process: it finds nothing of ours, leaves nothing in the user's home, and has no key."""
    offline = "0" if config.use_hub else "1"
    variable = config.engine.key_variable if isinstance(config.engine, Endpoint) else None
    return {
        **({variable: ""} if variable else {}),
        "MARIN_API_KEY": key,
        "HF_HUB_OFFLINE": offline,
        "HF_DATASETS_OFFLINE": offline,
        **{name: ",".join(filter(None, (os.environ.get(name), "127.0.0.1"))) for name in ("NO_PROXY", "no_proxy")},
        "PYTHONPATH": "",
        "PYTHONUNBUFFERED": "1",
        "XDG_DATA_HOME": f"{folder}/data",
        "XDG_CACHE_HOME": f"{folder}/cache",
    }


def _write(config: InspectConfig, answer: Mapping[str, Any], kept: KeptLogs) -> dict[str, Any]:
    listed = [log for of_name in answer["logs"] for log in of_name]
    logs = {log["label"]: (json.loads(Path(log["rows"]).read_text()), log["file"]) for log in listed}
    table = [row for label, (of, _) in sorted(logs.items()) for row in table_of(label, of)]
    scores = scores_of(table)
    if without := [label for label in logs if label not in scores]:
        raise InspectError(
            f"Task {without[0]!r} has no score that is a number: Inspect reports "
            f"{logs[without[0]][0]['results']!r:.500}. Give it a scorer with a metric, or leave it out of `tasks`."
        )
    rows = [row for label, (of, _) in sorted(logs.items()) for row in answer_rows(label, of)]
    results = {
        "inspect_ai": answer["inspect_ai"],
        "tasks": {label: {**of["eval"], **of["results"]} for label, (of, _) in sorted(logs.items())},
    }
    own = json.dumps(results, indent=2, ensure_ascii=False)  # a metric may be NaN
    write_bytes(join(config.output_path, "results.json"), f"{own}\n".encode())
    write_bytes(join(config.output_path, "scores.csv"), as_csv(table))
    write_jsonl(join(config.output_path, "samples.jsonl"), rows)
    write_bytes(join(config.output_path, "samples.html"), page_of_samples(rows, scores))
    for place, (label, (_, file)) in enumerate(sorted(logs.items())):
        name = f"{place:02}-{re.sub(r'[^A-Za-z0-9_.-]+', '-', label)}.eval"
        write_bytes(join(config.output_path, "logs", name), Path(file).read_bytes())
    plots = ["plots/scores.png"] if (bars := bars_of(scores)) else []
    for plot in plots:
        write_bytes(join(config.output_path, plot), draw_scores(bars))
    kept.remove()
    return {"tasks": len(scores), "samples": len(rows), "scores": scores, "plots": plots}
