"""Create the step that downloads from the Hugging Face hub."""

from __future__ import annotations

from collections.abc import Sequence

from marin_assets.stages.download.hub.download_hf import DownloadHfConfig, download_hf
from marin_assets.stages.publish.upload_model import TOKEN, UploadModelConfig, upload_model
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation
from marin_assets.step.origin import Origin
from marin_assets.step.partitions.sets import Partitions
from marin_assets.step.step import Step
from marin_assets.step.values import PartitionName, output_path_of, versioned


def default_download_hf(
    name: str,
    dataset: str,
    revision: str = "main",
    *,
    globs: Sequence[str] | str = ("**",),
    exclude: Sequence[str] | str = (),
    config_name: str | None = None,
    split: str | None = None,
    parquet_export: bool = False,
    allow_partial: bool = False,
    repo_type: str = "dataset",
    mirror: str | None = None,
    max_requests_per_5_min: int = 3000,
    env: Sequence[str] = (),
    override_output_path: str | None = None,
    expectations: Sequence[Expectation] = (),
    origin: Origin | None = None,
    partitions: Partitions | None = None,
) -> Step:
    """Return the step "raw/<name>", which downloads files of `dataset` ("owner/name") at `revision`, each verified.

    A branch or a tag is resolved when the step runs, and its commit is in the result; 40 digits pin the commit. `globs`
    and `exclude`, or `config_name` and `split`, choose the files. They all enter the version; `mirror`, a folder
    or bucket with the hub's paths, `max_requests_per_5_min` and `env` do not. A gated dataset needs env=("HF_TOKEN",),
    or a stored login. `origin` has its licence and size; without one, plans show them as unknown. With `partitions`,
    `revision` is the key: this_partition().
    """
    config = DownloadHfConfig(
        dataset=versioned(dataset),
        revision=revision if isinstance(revision, PartitionName) else versioned(revision),
        repo_type=versioned(repo_type),
        include=versioned(_globs(globs)),
        exclude=versioned(_globs(exclude)),
        config_name=versioned(config_name),
        split=versioned(split),
        parquet_export=versioned(parquet_export),
        allow_partial=versioned(allow_partial),
        mirror=mirror,
        max_requests_per_5_min=max_requests_per_5_min,
    )
    return Step(
        name=f"raw/{name}",
        fn=download_hf,
        config=config,
        env=tuple(env),
        resumable=True,
        override_output_path=override_output_path,
        expectations=expectations,
        origin=origin or Origin(name=dataset, homepage=_page_of(dataset, repo_type)),
        partitions=partitions,
    )


def _page_of(dataset: str, repo_type: str) -> str:
    return f"https://huggingface.co/{'' if repo_type == 'model' else 'datasets/'}{dataset}"


def _globs(globs: Sequence[str] | str) -> tuple[str, ...]:
    return (globs,) if isinstance(globs, str) else tuple(globs)


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
