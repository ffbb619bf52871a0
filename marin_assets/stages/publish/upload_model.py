"""Upload an exported model to the Hugging Face hub, with a card from the record of its training.

In:  the output of a training, with its record; the folder of its export below it.
Out: `uploaded.json`: the repository, the commit and the files; `README.md`, the card.

The hub's address is HF_ENDPOINT, the token HF_TOKEN, both from the environment of the worker. The repository is created
if it is not there. An upload of unchanged files makes no commit, so a killed upload is begun again.
"""

from __future__ import annotations

import logging
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marin_assets.inference.local_copy import copy_to_local
from marin_assets.stages.publish.model_card import model_card
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.storage.files import exists, write_bytes, write_json
from marin_resources.storage.output.record import read_record
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError
from marin_resources.types.record import Record

KINDS = ("huggingface",)
TOKEN = "HF_TOKEN"
REPOSITORY = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}")
CARD = "README.md"

log = logging.getLogger(__name__)


class UploadError(MarinError):
    """The model cannot be uploaded. The message is the reason."""


@dataclass(frozen=True, kw_only=True)
class UploadModelConfig:
    training_path: str
    """Output of the step that trained the model."""
    repository: str
    """On the hub: "owner/name"; versioned()."""
    output_path: str = THIS_OUTPUT_PATH
    model: str = versioned("hf")
    """Folder of the export below `training_path`: "exports/step-0000100" is a model in training."""
    private: bool = versioned(True)
    license: str | None = versioned(None)
    """By the hub's names: "apache-2.0"."""
    description: str | None = versioned(None)
    """A paragraph for the card."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check_repository, name)


def upload_model(config: UploadModelConfig) -> dict[str, Any]:
    """Upload.

    Returns url, commit, files and bytes. Raises UploadError for a name that is none, no model, no token, or a hub that
    refuses.
    """
    model_path = join(config.training_path, config.model)
    _check(config, model_path)
    record = read_record(config.training_path) or Record.from_dict({"name": Path(config.training_path).name})
    card = model_card(record, license=config.license, description=config.description)
    with tempfile.TemporaryDirectory(prefix="upload-") as folder:
        copy_to_local(model_path, folder)
        Path(folder, CARD).write_text(card)
        files = {
            str(path.relative_to(folder)): path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()
        }
        commit = _upload(config, folder)
    uploaded = {"url": commit.repo_url.url, "commit": commit.oid, "files": len(files), "bytes": sum(files.values())}
    log.info("uploaded %d files to %s, commit %s", len(files), uploaded["url"], commit.oid)
    write_bytes(join(config.output_path, CARD), card.encode())
    write_json(join(config.output_path, "uploaded.json"), {**uploaded, "names": sorted(files)})
    return uploaded


def _check_repository(config: UploadModelConfig) -> None:
    if not REPOSITORY.fullmatch(config.repository):
        raise UploadError(f"The repository is {config.repository!r}, expected 'owner/name' as on the hub.")


def _check(config: UploadModelConfig, model_path: str) -> None:
    _check_repository(config)
    if not exists(join(model_path, "config.json")):
        raise UploadError(f"{model_path!r} has no 'config.json', expected the folder of a Hugging Face export.")
    if not os.environ.get(TOKEN):
        raise UploadError(
            f"{TOKEN} is not set, expected a token of the hub that may write. Export it, or make a secret."
        )


def _upload(config: UploadModelConfig, folder: str) -> Any:
    """The commit."""
    from huggingface_hub import HfApi  # late, for its weight
    from huggingface_hub.errors import HfHubHTTPError

    api = HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None, token=os.environ[TOKEN])
    try:
        api.create_repo(config.repository, private=config.private, exist_ok=True)
        return api.upload_folder(
            repo_id=config.repository,
            folder_path=folder,
            commit_message=f"Upload of {config.training_path.rpartition('/')[2]}",
        )
    except (HfHubHTTPError, OSError, ValueError) as error:  # ValueError: the card's front matter
        raise UploadError(f"The hub refused the upload to {config.repository!r}: {error}") from None
