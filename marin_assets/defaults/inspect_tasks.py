"""Create the step that evaluates a model on tasks of Inspect, by its own package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from marin_assets.defaults.environment import extras_on
from marin_assets.inference.engine import Endpoint, Engine, in_version, key_variables, require_engine
from marin_assets.stages.evaluate.inspect_tasks.evaluate_with_inspect import evaluate_with_inspect
from marin_assets.stages.evaluate.inspect_tasks.inspect_config import (
    InspectConfig,
    InspectError,
    InspectTask,
    digest_of,
)
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation
from marin_assets.step.step import Step
from marin_assets.step.values import InputName, output_path_of, unwrap_versioned_value, versioned
from marin_resources.hardware.resources import Resources, cpu


@checks_arguments("engine")
def default_inspect_eval(
    step: Step | InputName | str,
    tasks: Sequence[str | InspectTask],
    *,
    folder: Step | InputName | str | Path | None = None,
    max_eval_instances: int | None = None,
    epochs: int | None = None,
    generation: Mapping[str, Any] | None = None,
    as_text: bool = False,
    use_hub: bool = False,
    engine: Engine | Endpoint | None = None,
    resources: Resources | None = None,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "evaluation/<its name>/inspect": scores of tasks of Inspect, of the model that `step` exports.

    `tasks` are "sums.py@sums" of a file in `folder`, whose content is in the version, or "inspect_evals/gsm8k" of a
    package in Inspect's environment. `generation` are settings by Inspect's names: without a temperature the server's
    own is taken. The model needs a chat template, or `as_text`. `engine` serves it: our JAX server if None, TORCH or
    VLLM, or the Endpoint of a server that has this very model; its kind is then in the name. With an Endpoint, `step`
    may also be a name, of a model that no step here has made.
    Raises InspectError for what is no folder, or for a name without an Endpoint.
    """
    of = step.step if isinstance(step, InputName) else step
    if of is None or (isinstance(of, str) and not isinstance(unwrap_versioned_value(engine), Endpoint)):
        raise InspectError(
            f"default_inspect_eval({step!r}) got no step and no Endpoint, expected one of them. Pass the step that "
            "exports the model, or engine=Endpoint(…) with the name."
        )
    if engine is not None:
        require_engine(engine)
    on = f"/{unwrap_versioned_value(engine).kind}" if engine is not None and not isinstance(of, str) else ""
    tasks_path, digest = _folder(folder)
    return Step(
        name=f"evaluation/{(of if isinstance(of, str) else of.name).removeprefix('checkpoints/')}/inspect{on}",
        fn=evaluate_with_inspect,
        config=InspectConfig(
            tasks=versioned(tuple(tasks)),
            model_path=_model_of(step),
            tasks_path=tasks_path,
            tasks_digest=versioned(digest),
            max_eval_instances=versioned(max_eval_instances),
            epochs=versioned(epochs),
            generation=versioned(dict(generation or {})),
            as_text=versioned(as_text),
            engine=in_version(engine),
            use_hub=use_hub,
        ),
        resources=resources or cpu(),
        extras=extras_on(resources, "train", "evaluate"),
        env=key_variables(engine),
        resumable=True,
        expectations=expectations,
    )


def _folder(folder: Step | InputName | str | Path | None) -> tuple[InputName | str | None, str | None]:
    """The path of the files of tasks, and their digest where no step makes them and they are on this machine."""
    if folder is None:
        return None, None
    if isinstance(folder, Step | InputName):
        return output_path_of(folder), None
    if "://" in str(folder):
        return str(folder), None
    return str(Path(folder).absolute()), digest_of(str(folder))


def _model_of(step: Step | InputName | str) -> InputName | None:
    if isinstance(step, str):
        return None
    return output_path_of(step) if isinstance(step, InputName) and step.name else output_path_of(step, "hf")
