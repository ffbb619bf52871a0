"""Create the steps that give a model to others."""

from __future__ import annotations

from marin_assets.stages.publish.upload_model import TOKEN, UploadModelConfig, upload_model
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.step import Step
from marin_assets.step.values import output_path_of, versioned


@checks_arguments()
def default_upload(
    step: Step,
    repository: str,
    *,
    model: str = "hf",
    private: bool = True,
    license: str | None = None,
    description: str | None = None,
) -> Step:
    """Return the step "uploads/<its name>", which uploads the model that `step` exports to the Hugging Face hub.

    `repository` is "owner/name". `model` is the folder of the export: "exports/step-0000100" is one of the training.
    The worker needs HF_TOKEN; HF_ENDPOINT is the address of another hub.
    """
    return Step(
        name=f"uploads/{step.name.removeprefix('checkpoints/')}",
        fn=upload_model,
        config=UploadModelConfig(
            training_path=output_path_of(step),
            repository=versioned(repository),
            model=versioned(model),
            private=versioned(private),
            license=versioned(license),
            description=versioned(description),
        ),
        extras=("train",),
        env=(TOKEN,),
        resumable=True,
    )
