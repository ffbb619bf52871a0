"""Create the steps that make text with a model."""

from __future__ import annotations

from marin_assets.defaults.environment import extras_on
from marin_assets.inference.engine import Endpoint, Engine, in_version, key_variables, require_engine
from marin_assets.stages.generate.generate_from_documents import GenerateConfig, generate_from_documents
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.step import Step
from marin_assets.step.values import InputName, output_path_of, versioned
from marin_resources.hardware.resources import Resources, cpu


@checks_arguments("engine")
def default_generation(
    name: str,
    documents: Step | InputName,
    model: Step | InputName | None,
    template: str,
    *,
    max_tokens: int = 256,
    temperature: float = 0.0,
    stop: tuple[str, ...] = (),
    chat: bool = False,
    system_prompt: str | None = None,
    engine: Engine | Endpoint | None = None,
    resources: Resources | None = None,
) -> Step:
    """Return the step "generated/<name>": for each document the answer of the model that `model` exports.

    `template` has the document's {text} in it, and may have {id}, {source} and {metadata.<key>}. `engine` is our JAX
    model in the step's process if None; VLLM for a large model; an Endpoint for one that a server has already, with
    `model` None if no step here has its tokenizer.
    """
    if engine is not None:
        require_engine(engine)
    return Step(
        name=f"generated/{name}",
        fn=generate_from_documents,
        config=GenerateConfig(
            model_path=_folder_of(model),
            documents_path=output_path_of(documents),
            template=versioned(template),
            max_tokens=versioned(max_tokens),
            temperature=versioned(temperature),
            stop=versioned(tuple(stop)),
            chat=versioned(chat),
            system_prompt=versioned(system_prompt),
            engine=in_version(engine),
        ),
        resources=resources or cpu(),
        extras=extras_on(resources, "train"),
        env=key_variables(engine),
        resumable=True,
    )


def _folder_of(model: Step | InputName | None) -> InputName | None:
    if model is None or isinstance(model, InputName):
        return model
    return output_path_of(model, "hf")
