"""Evaluate an exported model with lm-eval (EleutherAI's harness): on JAX and without torch, or on another engine.

In:  the folder of a Hugging Face export (config.json, model.safetensors, tokenizer.json, tokenizer_config.json), or an
     endpoint; the held-out questions and texts, or any folder of lm-eval task YAMLs.
Out: `results.json`, as lm-eval's own command writes it, but for OF_THE_MACHINE; `scores.csv`, a row for each metric of
     each task;
     `samples.jsonl`, the model's answer to each question; `samples.html`, to read them; `plots/scores.png`.

Model, tasks and data are copied to a temporary folder, because the libraries read local files only. Answers are saved
below `.marin/unfinished` as they come, until all exist: a killed evaluation resumes after them, with equal scores.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from marin_assets.documents.scores import as_csv
from marin_assets.inference.endpoint.client import EndpointClient
from marin_assets.inference.engine import Endpoint, Engine, check_engine, reads_weights
from marin_assets.inference.journal import FOLDER as UNFINISHED
from marin_assets.inference.local_copy import WEIGHTS, copy_to_local
from marin_assets.inference.model_servers import ModelServers
from marin_assets.inference.tokenizer import ModelTokenizer
from marin_assets.stages.evaluate.jsonl import write_jsonl
from marin_assets.stages.evaluate.lm_eval_config import (
    EvaluationError,
    HarnessOptions,
    LmEvalConfig,
    check_tasks,
    eval_tasks,
)
from marin_assets.stages.evaluate.lm_eval_tasks.run_tasks import cut_by_task, run_tasks
from marin_assets.stages.evaluate.lm_eval_tasks.task_data import data_of_tasks, isolated_hugging_face, load_tasks
from marin_assets.stages.evaluate.sample_page import page_of_samples
from marin_assets.stages.evaluate.scores import answer_rows, bars_of, draw_scores, headline, scores_of, table_of
from marin_assets.stages.evaluate.tasks.code_eval import check_programs
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.shards.file_shards import folder_state
from marin_resources.storage.files import exists, remove_folder, write_bytes
from marin_resources.storage.paths import join

KINDS = ("lm-eval", "jax")
OF_THE_MACHINE = ("date", "git_hash", "upper_git_hash", "pretty_env_info")
"""Keys of lm-eval's results that differ between two evaluations of one model: the output's record has its own."""
__all__ = ["EvaluationError", "HarnessOptions", "LmEvalConfig", "evaluate_with_lm_eval"]


def evaluate_with_lm_eval(config: LmEvalConfig) -> dict[str, Any]:
    """Evaluate a model with lm-eval.

    Returns the scores by task, and those of the held-out tasks also at the top level; cut_contexts: the questions whose
    context was longer than the window; shortened_texts, if a server takes fewer tokens of a text than the window.
    Raises EvaluationError for an unknown task, a task twice, one that cannot run on this model, or a folder without a
    model, SandboxError for a task of programs on a machine without a sandbox, MirrorError for a task whose data the
    mirror lacks, EngineError for an engine that is not on this machine.
    """
    from lm_eval.utils import handle_non_serializable

    check_tasks(config)
    if config.engine is not None:
        check_engine(config.engine)
    with (
        tempfile.TemporaryDirectory(prefix="lm-eval-") as folder,
        isolated_hugging_face(folder, config.use_hub),
        data_of_tasks(config, f"{folder}/mirror"),
    ):
        manager = load_tasks(config, folder)
        names = [task.name for task in eval_tasks(config)]
        check_programs(manager, names, confirmed=bool(config.options and config.options.confirm_run_unsafe_code))
        if config.model_path is not None and not exists(join(config.model_path, "config.json")):
            raise EvaluationError(
                f"{config.model_path!r} has no 'config.json', expected the folder of a Hugging Face export. Pass for "
                "example 'hf' below a training step's output."
            )
        with model_of(config, f"{folder}/model") as lm:
            lm.kept_answers = kept_answers(config)
            lm.seed = (config.options or unwrap_versioned_value(HarnessOptions())).seed
            results = run_tasks(config, manager, lm)
    samples = results.pop("samples")
    cut = cut_by_task(samples, lm)
    scores = scores_of({**results, "samples": samples})
    rows = [{"task": task, **row} for task, of in sorted(samples.items()) for row in answer_rows(of)]
    of_the_model = {key: value for key, value in results.items() if key not in OF_THE_MACHINE}
    of_the_model |= _about(config, samples, lm)
    own = json.dumps(of_the_model, indent=2, default=handle_non_serializable, ensure_ascii=False)
    write_bytes(join(config.output_path, "results.json"), own.replace(f"{folder}/", "").encode())
    write_bytes(join(config.output_path, "scores.csv"), as_csv(table_of(results)))
    write_jsonl(join(config.output_path, "samples.jsonl"), rows)
    write_bytes(join(config.output_path, "samples.html"), page_of_samples(rows, scores))
    plots = ["plots/scores.png"] if (bars := bars_of(scores)) else []
    for plot in plots:
        write_bytes(join(config.output_path, plot), draw_scores(bars))
    with suppress(FileNotFoundError):
        remove_folder(join(config.output_path, UNFINISHED))
    return {
        **headline(scores),
        "tasks": len(scores),
        "cut_contexts": sum(cut.values()),
        **({"cut_contexts_by_task": cut} if cut else {}),
        **({"shortened_texts": lm.shortened} if lm.shortened else {}),
        "scores": scores,
        "plots": plots,
    }


def _about(config: LmEvalConfig, samples: Mapping[str, Sequence[Mapping[str, Any]]], lm: Any) -> dict[str, Any]:
    """The keys that lm-eval's command adds to its results, but for names and times: the output's record has its own."""
    from lm_eval.utils import hash_string

    options = config.options or unwrap_versioned_value(HarnessOptions())
    template = lm.chat_template() if options.apply_chat_template else None
    instruction = options.system_instruction
    hashes = {
        task: hash_string("".join(row["doc_hash"] + row["prompt_hash"] + row["target_hash"] for row in rows))
        for task, rows in samples.items()
    }
    return {
        "task_hashes": hashes,
        "model_source": "jax" if config.engine is None else config.engine.kind,
        "system_instruction": instruction,
        "system_instruction_sha": hash_string(instruction) if instruction else None,
        "fewshot_as_multiturn": options.fewshot_as_multiturn,
        "chat_template": template,
        "chat_template_sha": hash_string(template) if template else None,
    }


def kept_answers(config: LmEvalConfig) -> Any:
    """The store of the answers of this model on this engine until the evaluation ends."""
    from marin_assets.stages.evaluate.models.kept_answers import KeptAnswers

    engine = config.engine
    if isinstance(engine, Endpoint):
        by: Any = (engine.kind, engine.model, engine.max_length)  # at any address
    else:  # on any number of servers
        by = engine and (engine.kind, engine.dtype, engine.max_length, engine.options)
    return KeptAnswers(
        config.output_path,
        made_by=f"{folder_state(config.model_path).stamp if config.model_path else ''} {by!r}",
        save_every_s=config.save_every_s,
    )


@contextmanager
def model_of(config: LmEvalConfig, folder: str) -> Iterator[Any]:
    """The model with lm-eval's interface, on the requested engine. What it needs here is copied to `folder`."""
    if config.model_path is not None:
        but = () if reads_weights(config.engine) else WEIGHTS
        copy_to_local(config.model_path, folder, but=but)
    if isinstance(config.engine, Endpoint):
        with behind(config.engine, folder if config.model_path else None, config.max_length) as lm:
            yield lm
        return
    if config.engine is None:
        from marin_assets.inference.jax_model import load_model
        from marin_assets.stages.evaluate.models.jax_lm import JaxLM  # imports lm-eval at its top

        yield JaxLM(*load_model(folder), batch_size=config.batch_size, max_length=config.max_length)
        return
    assert config.model_path is not None  # `check_tasks` refuses others without an endpoint
    with served(config.engine, folder, config.model_path, config.max_length) as lm:
        yield lm


@contextmanager
def served(engine: Engine, folder: str, model_path: str, max_length: int | None) -> Iterator[Any]:
    """The model behind servers that end with the block."""
    from marin_assets.inference.generator import window_of
    from marin_assets.stages.evaluate.models.server_lm import ServerLM

    with ModelServers(engine, folder, model_path) as server:
        window = engine.max_length or window_of(folder)
        yield ServerLM(server, ModelTokenizer(folder), window=window, max_length=max_length)


@contextmanager
def behind(endpoint: Endpoint, folder: str | None, max_length: int | None) -> Iterator[Any]:
    """The model behind an endpoint: by tokens if a local folder has its tokenizer, else by texts."""
    from marin_assets.inference.generator import window_of
    from marin_assets.stages.evaluate.models.server_lm import EndpointLM
    from marin_assets.stages.evaluate.models.text_lm import TextLM

    with EndpointClient(endpoint) as client:
        if folder is None:
            yield TextLM(client)
        else:
            window = endpoint.max_length or window_of(folder)
            yield EndpointLM(client, ModelTokenizer(folder), window=window, max_length=max_length)
