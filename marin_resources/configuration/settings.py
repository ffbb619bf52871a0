"""Default locations: the project's root, the prefix of outputs, and Dagster's home.

    MARIN_PREFIX   prefix of outputs: a URL or a folder       default: <root>/outputs
    DAGSTER_HOME   folder of Dagster's runs and events        default: <root>/.dagster

Both are made absolute, so that every process uses the same ones, in whichever folder it was started.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import uuid
from functools import cache
from pathlib import Path

from marin_resources.configuration.own_project import own_project
from marin_resources.types.errors import InvalidInputError
from marin_resources.types.places import absolute, split_scheme

DISTRIBUTION = "marin-dagster"


class SettingError(InvalidInputError):
    """An unusable setting: one sentence with its name and value."""


def project_root() -> Path:
    """The project of one's own that the working folder is in, else the checkout that this package was imported from,
    else, for an installed wheel, the working folder."""
    return own_project() or checkout() or Path.cwd()


@cache
def checkout() -> Path | None:
    """The checkout that this package was imported from; None for an installed wheel, in whichever project."""
    root = Path(__file__).resolve().parents[2]
    path = root / "pyproject.toml"
    return root if path.exists() and f'name = "{DISTRIBUTION}"' in path.read_text() else None


def default_prefix() -> str:
    """MARIN_PREFIX or its default, as an absolute path or URL. Also sets the variable, for all child processes."""
    prefix = os.environ.get("MARIN_PREFIX") or str(_outputs())
    os.environ["MARIN_PREFIX"] = normalize_prefix(prefix)
    return os.environ["MARIN_PREFIX"]


def is_default_prefix(prefix: str) -> bool:
    """Whether it is the prefix of a process for which nobody has chosen one."""
    return normalize_prefix(prefix) == normalize_prefix(str(_outputs()))


def _outputs() -> Path:
    return project_root() / "outputs"


def normalize_prefix(prefix: str) -> str:
    """The prefix as an absolute path or URL without a trailing slash. Raises SettingError if it cannot be one."""
    if not prefix.strip():
        raise SettingError("The prefix is empty. Set MARIN_PREFIX to a folder or to a URL such as gs://bucket/path.")
    scheme, rest = split_scheme(prefix.strip())
    if scheme == "file" and rest.strip():
        return normalize_prefix(rest)
    if scheme:
        _check_scheme(scheme, prefix)
        if not rest.partition("/")[0].strip():
            raise SettingError(f"The prefix {prefix!r} names no bucket. Use a URL such as gs://bucket/path.")
        return f"{scheme}://{rest.rstrip('/')}"
    _refuse_one_slash(prefix)
    path = absolute(prefix.strip())
    if os.path.exists(path) and not os.path.isdir(path):
        raise SettingError(f"The prefix {prefix!r} is a file. Set MARIN_PREFIX to a folder or a URL.")
    return path


def _refuse_one_slash(prefix: str) -> None:
    """Raise SettingError for "gs:/bucket": it would be a folder named "gs:" in the working folder."""
    mistyped = re.match(r"\s*(file|gcs|gs|s3a|s3):(?!//)/*", prefix, re.IGNORECASE)
    if mistyped:
        scheme, rest = mistyped[1].lower(), prefix[mistyped.end() :]
        meant = f"{scheme}:///{rest}" if scheme == "file" else f"{scheme}://{rest}"
        raise SettingError(f"The prefix {prefix!r} is no URL, which has '://' after its scheme. Use {meant!r}.")


def dagster_home() -> str:
    """DAGSTER_HOME or its default, as an absolute path. It need not exist."""
    return os.path.abspath(os.path.expanduser(os.environ.get("DAGSTER_HOME") or str(project_root() / ".dagster")))


def ensure_dagster_home() -> str:
    """DAGSTER_HOME or its default, as an absolute path. Also sets the variable, for all child processes.

    A missing folder is created. An unused one gets a copy of the project's dagster.yaml. Several processes may do this
    at the same moment, and one that is killed here leaves nothing that the next one does not complete. Raises
    SettingError if the folder cannot be created or written.
    """
    given = os.environ.get("DAGSTER_HOME") or str(project_root() / ".dagster")
    home = dagster_home()
    try:
        os.makedirs(home, exist_ok=True)
        settings = _laptop_settings()
        if settings.exists() and not any(os.path.exists(f"{home}/{name}") for name in ("dagster.yaml", "history")):
            _copy_whole(settings, f"{home}/dagster.yaml")
    except (FileExistsError, NotADirectoryError):
        raise SettingError(f"DAGSTER_HOME is {given!r}, and there is a file. Set it to a folder.") from None
    except OSError as error:
        raise SettingError(
            f"DAGSTER_HOME is {given!r}, which cannot be written ({error.strerror}). Set it to a folder of yours."
        ) from None
    os.environ["DAGSTER_HOME"] = home
    return home


def _laptop_settings() -> Path:
    """The project's dagster.yaml: that of the checkout, of which the wheel has a copy."""
    root = checkout()
    return root / ".dagster" / "dagster.yaml" if root is not None else Path(__file__).with_name("dagster.yaml")


def _copy_whole(source: Path, target: str) -> None:
    """Copy a file, whole or not at all. Does nothing if the target exists."""
    temporary = f"{target}.{uuid.uuid4().hex[:8]}.tmp"
    shutil.copy(source, temporary)
    try:
        with contextlib.suppress(FileExistsError):  # by another process that starts now
            os.link(temporary, target)
    finally:
        os.unlink(temporary)


def _check_scheme(scheme: str, prefix: str) -> None:
    from fsspec.registry import known_implementations

    if scheme not in known_implementations:
        raise SettingError(
            f"The prefix {prefix!r} has the unknown scheme {scheme!r}. Use a folder, or a URL such as gs://bucket/path."
        )
