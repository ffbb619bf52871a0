"""The code of a job: the submitter's working directory, shipped; or the code of the nodes' image.

A job with shipped code starts in the directory of the unpacked package. A job of an image starts in `image_root`,
which corresponds to the working directory here: a script has the same path relative to both.

A cluster keeps a package in the memory of its head, and loses it with the head. The name has the digest of the content.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from marin_resources.configuration.settings import project_root
from marin_resources.ray_tpu.cluster.code.package import CodeError, Package, package_of
from marin_resources.ray_tpu.cluster.settings import ClusterSettings, CodeMode
from marin_resources.storage.files import exists, write_bytes
from marin_resources.storage.paths import join
from marin_resources.wire.reference import import_paths

if TYPE_CHECKING:
    from marin_resources.ray_tpu.cluster.api.jobs_api import JobsApi


FOLDER = ".marin/code"
"""Below the prefix."""


@dataclass(frozen=True, kw_only=True)
class Code:
    mode: CodeMode
    package: str | None = None
    """URI of the shipped package: "gcs://_ray_pkg_….zip"."""
    root: str | None = None
    """The submitter's working directory, which stands for the job's own. None: code installed on the node."""
    import_paths: tuple[str, ...] = ()
    """Folders from which the submitter imports, relative to the root."""
    image_root: str | None = None
    """The root's path in the image; None for a package, whose folder Ray chooses."""

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "mode": self.mode.value, "import_paths": list(self.import_paths)}

    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> Code:
        return Code(**{**fields, "mode": CodeMode(fields["mode"]), "import_paths": tuple(fields["import_paths"])})

    def runtime_env(self) -> dict[str, Any]:
        """Ray's runtime environment of the job."""
        return {} if self.package is None else {"working_dir": self.package}

    def command(self, python: str, module: str, *arguments: str) -> str:
        """The shell command that runs a module of this code with a Python of the node."""
        cd = "" if self.image_root is None else f"cd {shlex.quote(self.image_root)} && "
        return f"{cd}exec {shlex.join([python, '-m', module, *arguments])}"


async def ship(settings: ClusterSettings, api: JobsApi, references: Iterable[str], prefix: str | None) -> Code:
    """Make the modules and scripts of `references` importable in a job: upload the package if the cluster lacks it, and
    keep it below the prefix, if one is given.

    The cluster keeps an unused package for some minutes only, so call this before every job.
    Raise CodeError if a script cannot be shipped.
    """
    code = await asyncio.to_thread(code_of, settings, references)
    if code.package is not None:
        package = await asyncio.to_thread(package_of, root_of(settings))
        async with _uploading(settings.address, package.uri):  # one upload for steps that begin at once
            if not await api.has_package(package.uri):
                await api.upload_package(package.uri, package.data)
            if prefix is not None:
                await asyncio.to_thread(keep, prefix, package)
    return code


def code_of(settings: ClusterSettings, references: Iterable[str]) -> Code:
    """The code that makes the modules and scripts of `references` importable. Blocks while the package is built.

    Raise CodeError if a script is not in it.
    """
    names, root = sorted(set(references)), root_of(settings)
    if settings.code is CodeMode.IMAGE:
        return _in_image(settings.image_root, root, names)
    package = package_of(root)
    for script in _scripts(names):
        _refuse_unshipped(script, package)
    folders = _folders_below(root, names, package.has_folder)
    return Code(mode=CodeMode.SHIP, package=package.uri, root=root, import_paths=folders)


def root_of(settings: ClusterSettings) -> str:
    """The working directory of the submitter, whose code jobs run."""
    return os.path.abspath(settings.working_dir or project_root())


def _in_image(image_root: str | None, root: str, names: list[str]) -> Code:
    for script in _scripts(names):
        if image_root is None:
            raise CodeError(
                f"The script {script!r} is not on the cluster, which runs the code of its image. Put the function into "
                "a module of the image, set MARIN_CLUSTER_IMAGE_ROOT to where the image has it, or ship the code."
            )
        if _below(root, script) is None:
            raise CodeError(
                f"{script!r} is outside of the working directory {root!r}, which is {image_root!r} in the cluster's "
                "image. Move it inside, or set MARIN_CLUSTER_WORKING_DIR."
            )
    if image_root is None:
        return Code(mode=CodeMode.IMAGE)
    folders = _folders_below(root, names, lambda relative: True)
    return Code(mode=CodeMode.IMAGE, root=root, import_paths=folders, image_root=image_root)


def _refuse_unshipped(script: str, package: Package) -> None:
    relative = _below(package.root, script)
    if relative is None:
        raise CodeError(
            f"{script!r} is outside of the working directory {package.root!r} that is shipped. Move it inside, or "
            "set MARIN_CLUSTER_WORKING_DIR."
        )
    if relative not in package.files:
        raise CodeError(
            f"{script!r} was not shipped with the working directory {package.root!r}: it did not exist when the "
            "run began, or an ignore file excludes it. Put it where .gitignore does not apply, and run again."
        )


def _scripts(references: Iterable[str]) -> list[str]:
    addresses = (reference.rpartition(":")[0] for reference in references)
    return [address for address in addresses if address.endswith(".py")]


def _folders_below(root: str, references: Iterable[str], has: Callable[[str], bool]) -> tuple[str, ...]:
    """The import paths of this process that belong to the project, relative to its root."""
    real_root = os.path.realpath(root)
    paths = (os.path.realpath(path) for path in import_paths(references))
    below = [_below(real_root, path) for path in paths if not _is_environment(path, real_root)]
    return tuple(dict.fromkeys(relative for relative in below if relative is not None and has(relative)))


def _is_environment(path: str, root: str) -> bool:
    """Whether a folder belongs to a Python, which may be below the root (`.venv`)."""
    if {"site-packages", "dist-packages"}.intersection(path.split("/")):
        return True
    homes = {os.path.realpath(home) for home in (sys.prefix, sysconfig.get_paths()["stdlib"])}
    return any(_below(root, home) not in (None, ".") and _below(home, path) is not None for home in homes)


def _below(folder: str, path: str) -> str | None:
    """The path relative to the folder; None if it is outside."""
    relative = os.path.relpath(path, folder)
    return None if relative == ".." or relative.startswith("../") else relative


def _uploading(address: str, uri: str) -> asyncio.Lock:
    return _LOCKS.setdefault(asyncio.get_running_loop(), {}).setdefault((address, uri), asyncio.Lock())


_LOCKS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str], asyncio.Lock]] = WeakKeyDictionary()


def keep(prefix: str, package: Package) -> None:
    """Store the package below the prefix, unless it exists."""
    path = _path(prefix, package.uri)
    if not _is_kept(path):
        write_bytes(path, package.data)
        _is_kept.cache_clear()


def _path(prefix: str, uri: str) -> str:
    return join(prefix, FOLDER, uri.rpartition("://")[2])


@cache
def _is_kept(path: str) -> bool:
    return exists(path)
