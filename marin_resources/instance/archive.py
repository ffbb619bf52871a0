"""The file of a back-up: a tar, compressed by Zstandard, whose last member lists all others with their digests.

A file that was cut off has no list, so it is refused. It appears under its name when it is complete.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from marin_resources.configuration.settings import SettingError

LIST = "back-up.json"
FORMAT_VERSION = 1
PIECE_BYTES = 1 << 20


class BackUpError(SettingError):
    """A back-up that cannot be made, read or restored: one sentence."""


class Writer:
    """Adds files to a back-up."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self.digests: dict[str, str] = {}

    def add(self, name: str, path: Path) -> None:
        """Add a file, as long as it is now: another process may append to it."""
        with open(path, "rb") as file:
            member = self._tar.gettarinfo(arcname=name, fileobj=file)
            digest = _Digesting(file)
            self._tar.addfile(member, digest)  # type: ignore[arg-type]  # of a file it uses `read` alone
        self.digests[name] = digest.hexdigest()


@contextmanager
def new_archive(target: Path, facts: Mapping[str, Any]) -> Iterator[Writer]:
    """A back-up to be filled in the block; `facts` are for its reader. Raises BackUpError if the file exists."""
    import zstandard

    if target.exists():
        raise BackUpError(f"{str(target)!r} exists, and a back-up replaces no file. Choose another name.")
    if not target.parent.is_dir():
        raise BackUpError(f"There is no folder {str(target.parent)!r} for the back-up. Create it.")
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        with open(temporary, "xb") as raw:
            os.chmod(temporary, 0o600)  # runs hold configs, and logs what steps printed
            with (
                zstandard.ZstdCompressor(level=3, threads=-1).stream_writer(raw, closefd=False) as packed,
                tarfile.open(fileobj=packed, mode="w|") as tar,
            ):
                writer = Writer(tar)
                yield writer
                _add_list(tar, {**facts, "format_version": FORMAT_VERSION, "files": writer.digests})
            raw.flush()
            os.fsync(raw.fileno())
        os.link(temporary, target)  # unlike a rename, it replaces no file
    except FileExistsError:
        raise BackUpError(f"{str(target)!r} exists, and a back-up replaces no file. Choose another name.") from None
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def unpack(source: Path, folder: Path) -> dict[str, Any]:
    """Unpack a back-up into an empty folder, and return its facts. Raises BackUpError unless it is complete."""
    import zstandard

    digests: dict[str, str] = {}
    facts: dict[str, Any] | None = None
    try:
        with (
            open(source, "rb") as raw,
            zstandard.ZstdDecompressor().stream_reader(raw) as packed,
            tarfile.open(fileobj=packed, mode="r|") as tar,
        ):
            for member in tar:
                if member.name == LIST:
                    facts = json.loads(_content(tar, member).read())
                else:
                    digests[member.name] = _unpack_file(tar, member, folder)
    except FileNotFoundError:
        raise BackUpError(f"There is no back-up {str(source)!r}.") from None
    except (tarfile.TarError, zstandard.ZstdError, ValueError, EOFError, IsADirectoryError) as error:
        raise BackUpError(f"{str(source)!r} is no back-up, or is damaged ({error}). Use another.") from None
    return _checked(source, facts, digests)


def _checked(source: Path, facts: dict[str, Any] | None, digests: Mapping[str, str]) -> dict[str, Any]:
    if facts is None:
        raise BackUpError(f"The back-up {str(source)!r} is cut off. Use another.")
    if facts.get("format_version") != FORMAT_VERSION:
        version = facts.get("format_version")
        raise BackUpError(
            f"The back-up {str(source)!r} has format {version!r}, expected {FORMAT_VERSION}. Upgrade marin."
        )
    if facts["files"] != digests:
        wrong = sorted(name for name in {*facts["files"], *digests} if facts["files"].get(name) != digests.get(name))
        raise BackUpError(f"The back-up {str(source)!r} is damaged: {wrong[0]!r} is not what was stored. Use another.")
    return facts


def _unpack_file(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> str:
    """Write one file below the folder; return its digest. Raises ValueError for a name that leads elsewhere."""
    place = folder / member.name
    if not member.isfile() or not place.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"it has {member.name!r} in it")
    place.parent.mkdir(parents=True, exist_ok=True)
    digest = _Digesting(_content(tar, member))
    with open(place, "xb") as file:
        while piece := digest.read(PIECE_BYTES):
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    content = tar.extractfile(member)
    if content is None:
        raise ValueError(f"{member.name!r} is no file")
    return content


def _add_list(tar: tarfile.TarFile, facts: Mapping[str, Any]) -> None:
    data = json.dumps(facts, indent=2).encode()
    member = tarfile.TarInfo(LIST)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


class _Digesting:
    """A file whose digest is known when it was read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._sha256 = file, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        piece = self._file.read(size)
        self._sha256.update(piece)
        return piece

    def hexdigest(self) -> str:
        return self._sha256.hexdigest()
