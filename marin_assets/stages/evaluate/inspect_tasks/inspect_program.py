"""Run tasks of Inspect: a script for a Python of its own.

    python inspect_program.py REQUEST.json ANSWER.json

It needs inspect-ai, which does not share this project's environment, and of this project nothing. The request has the
tasks, the folder of their files, the model and its address, and a folder for logs with a subfolder for each task, in
which finished samples of an earlier attempt are used again. The answer is {"error"} with a sentence, or {"inspect_ai"},
the version of the package, and {"logs"}: for each task {"label", "file", "rows"}, with the paths of its log and of the
parts of it that rows are made of.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SHOWN = 400
"""Characters of an error of a task."""
NAMED = 20
"""Tasks in an error."""
PARTS = {
    "eval": ("task", "task_version", "task_args_passed"),
    "results": ("total_samples", "completed_samples", "scores"),
    "samples": ("id", "epoch", "input", "choices", "target", "output", "scores", "error"),
    "reductions": ("scorer", "reducer", "samples"),
}
"""Parts of a log that rows are made of."""
MARKUP = re.compile(r"\[/?[a-z ]*\]")


class TaskError(Exception):
    """The evaluation has ended. The message is a sentence with the task."""


def main(request_path: str, answer_path: str) -> None:
    request = json.loads(Path(request_path).read_text())
    try:
        answer: dict[str, Any] = {"logs": run(request), "inspect_ai": version("inspect_ai")}
    except TaskError as error:
        answer = {"error": str(error)}
    Path(answer_path).write_text(json.dumps(answer))


def run(request: Mapping[str, Any]) -> list[list[dict[str, str]]]:
    """Load all tasks before the first is run. Raises TaskError."""
    os.environ.update({"INSPECT_EVAL_MODEL": request["model"], "MARIN_BASE_URL": request["url"]})  # some load with it
    os.chdir(request["folder"])
    sys.path[0] = request["folder"]  # in place of that of this script
    _check_generation(request["generation"])
    loaded = [_load(task["name"], task["args"]) for task in request["tasks"]]
    for task, of in zip(request["tasks"], loaded, strict=True):
        _refuse_sandboxes(task["name"], of)
    _refuse_same_labels(request["tasks"], loaded)
    return [
        _run_one(task, of, f"{request['logs']}/{number}", request)
        for number, (task, of) in enumerate(zip(request["tasks"], loaded, strict=True))
    ]


def _check_generation(generation: Mapping[str, Any]) -> None:
    from inspect_ai.model import GenerateConfig
    from pydantic import ValidationError

    settings = sorted(GenerateConfig.model_fields.keys() - {"max_connections"})
    for name in generation:
        if name not in settings:
            raise TaskError(f"The setting {name!r} of generation is unknown, expected one of {', '.join(settings)}.")
    try:
        GenerateConfig(**generation)
    except ValidationError as error:
        first = error.errors()[0]
        raise TaskError(
            f"The setting {first['loc'][0]!r} of generation is {first['input']!r}, and Inspect refuses it: "
            f"{first['msg']}. Correct it."
        ) from error


def _load(name: str, arguments: dict[str, Any]) -> Sequence[Any]:
    from inspect_ai._eval.loader import load_tasks  # neither has a public name
    from inspect_ai._util.registry import registry_params

    file = name.partition("@")[0]
    if file.endswith(".py"):
        _compile(name, file)
    elif "/" in name and find_spec(package := name.partition("/")[0]) is None:
        raise TaskError(
            f"Task {name!r} is of the package {package!r}, which Inspect's environment does not have. Install it "
            f"for {sys.executable!r}, or correct the name."
        )
    try:
        tasks: Sequence[Any] = load_tasks([name], arguments)
    except (Exception, SystemExit) as error:  # whatever the file of a task does
        if type(error).__name__ == "PrerequisiteError" and "not found" in str(error):
            raise TaskError(f"Task {name!r} is unknown. {_expected(name)}") from error
        raise TaskError(f"Task {name!r} cannot be loaded: {_shown(error)}. Correct it.") from error
    if not tasks:
        raise TaskError(f"Task {name!r} is unknown. {_expected(name)}")
    for task in tasks:
        if unknown := sorted(arguments.keys() - registry_params(task).keys()):
            raise TaskError(f"Task {name!r} has no argument {unknown[0]!r}. Correct its args.")
        if not task.scorer:
            raise TaskError(f"Task {task.name!r} has no scorer, so it would have no score. Give it one.")
    return tasks


def _compile(name: str, file: str) -> None:
    """Look for mistakes that Inspect passes over in silence."""
    if not Path(file).is_file():
        raise TaskError(f"Task {name!r} is unknown: the folder of tasks has no file {file!r}. {_expected(name)}")
    try:
        compile(Path(file).read_bytes(), file, "exec")
    except (SyntaxError, ValueError) as error:
        line = f" ({file}, line {error.lineno})" if isinstance(error, SyntaxError) else ""
        reason = error.msg if isinstance(error, SyntaxError) else error
        raise TaskError(
            f"Task {name!r} cannot be loaded: {type(error).__name__}: {reason}{line}. Correct it."
        ) from error


def _expected(name: str) -> str:
    """A sentence with the nearest name of a task, or with some of all."""
    from inspect_ai import list_tasks
    from inspect_ai._util.registry import registry_find, registry_info

    here = [f"{info.file}@{info.name}" for info in list_tasks([])]
    of_packages = {registry_info(task).name for task in registry_find(lambda info: info.type == "task")}
    names = here + sorted(name for name in of_packages if "/" in name)
    if near := difflib.get_close_matches(name, names, n=1):
        return f"Did you mean {near[0]!r}?"
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    shown = ", ".join(map(repr, names[:NAMED])) + more
    return f"Expected {'one of ' + shown if names else 'a file of tasks, such as sums.py@sums, or a package of them'}."


def _refuse_sandboxes(name: str, tasks: Sequence[Any]) -> None:
    for task in tasks:
        for sandbox in _sandboxes(task):
            raise TaskError(
                f"Task {name!r} wants the sandbox {sandbox!r}, which a step does not have: it runs no program that a "
                "model writes. Leave it out."
            )


def _sandboxes(task: Any) -> Iterator[str]:
    for owner in (task, *task.dataset):
        if (sandbox := getattr(owner, "sandbox", None)) is not None:
            yield str(sandbox.type)


def _refuse_same_labels(tasks: Sequence[Mapping[str, Any]], loaded: Sequence[Sequence[Any]]) -> None:
    labels: set[str] = set()
    for task, of in zip(tasks, loaded, strict=True):
        if task["alias"] is not None and len(of) > 1:
            raise TaskError(f"Task {task['name']!r} stands for {len(of)} tasks, and has one alias. Name one with @.")
        for label in (task["alias"] or loaded_task.name for loaded_task in of):
            if label in labels:
                raise TaskError(f"Two tasks are called {label!r}. Give one an alias, or leave one out.")
            labels.add(label)


def _run_one(
    task: Mapping[str, Any], loaded: Sequence[Any], logs: str, request: Mapping[str, Any]
) -> list[dict[str, str]]:
    """Run what a name stands for: a task, or those of a file. Returns the paths of the logs."""
    from inspect_ai import eval_set
    from inspect_ai.log import read_eval_log

    name = task["name"]
    _remove_damaged(logs)
    try:
        _, headers = eval_set(
            list(loaded),
            log_dir=logs,
            model=request["model"],
            limit=request["limit"],
            epochs=request["epochs"],
            max_connections=request["at_once"],
            max_samples=request["at_once"],
            max_tasks=1,
            retry_attempts=1,
            retry_immediate=False,
            display="log",
            log_format="eval",
            log_buffer=1,
            log_realtime=False,
            score_display=False,
            ctl_server=False,
            **request["generation"],
        )
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # whatever the code of a task does
        raise TaskError(f"Task {name!r} failed: {_shown(error)}. Correct it.") from error
    dumps = []
    for header in headers:
        if header.status != "success":
            reason = header.error.message if header.error else "it was interrupted"
            raise TaskError(f"Task {name!r} failed: {_cut(reason)}. Its finished samples are kept; correct it.")
        file = header.location.removeprefix("file://")
        log = json.loads(read_eval_log(file, resolve_attachments=True).model_dump_json())
        Path(f"{file}.json").write_text(json.dumps({part: _only(log[part], names) for part, names in PARTS.items()}))
        label = task["alias"] or log["eval"]["task"]
        dumps.append({"label": label, "file": file, "rows": f"{file}.json"})
    return dumps


def _remove_damaged(logs: str) -> None:
    """Remove kept logs that cannot be read: their samples are run again."""
    from inspect_ai.log import read_eval_log

    for file in Path(logs).glob("*.eval"):
        try:
            read_eval_log(str(file))
        except Exception as error:  # whatever the damage is
            sys.stdout.write(f"{file.name!r} is damaged ({_shown(error)}): its samples are run again\n")
            file.unlink()


def _only(part: Any, names: Sequence[str]) -> Any:
    """The values of these names of an object, or of all objects of a list."""
    if isinstance(part, list):
        return [_only(item, names) for item in part]
    return part and {name: part.get(name) for name in names}


def _shown(error: BaseException) -> str:
    """The error with its place in the file of a task."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "site-packages" not in frame.filename]
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(Path.cwd())]
    place = f" ({os.path.relpath(own[-1].filename)}, line {own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {_cut(str(error))}{place}"


def _cut(text: str) -> str:
    line = " ".join(MARKUP.sub("", text).split()).rstrip(".")
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"


if __name__ == "__main__":
    main(*sys.argv[1:])
