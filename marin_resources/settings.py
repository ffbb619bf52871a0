"""Where things are when nobody says otherwise: the project's root, the prefix, Dagster's home.

    MARIN_PREFIX   where outputs lie: a URL or a folder      default: <root>/outputs
    DAGSTER_HOME   where Dagster keeps its runs and events   default: <root>/.dagster

Both are absolute, so that every process sees the same, wherever it was started.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path


class SettingError(ValueError):
    """A setting that cannot be used: one sentence with its name and value."""


def project_root() -> Path:
    """The checkout that this package was imported from, or the current folder for an installed wheel."""
    root = Path(__file__).resolve().parent.parent
    return root if (root / "pyproject.toml").exists() else Path.cwd()


def default_prefix() -> str:
    """MARIN_PREFIX or its default, absolute. A relative one is resolved once, here, for all child processes too."""
    prefix = os.environ.get("MARIN_PREFIX") or str(project_root() / "outputs")
    os.environ["MARIN_PREFIX"] = normalize_prefix(prefix)
    return os.environ["MARIN_PREFIX"]


def normalize_prefix(prefix: str) -> str:
    """The prefix as an absolute path or URL without a trailing slash. Raises SettingError if it cannot be one."""
    if not prefix.strip():
        raise SettingError("The prefix is empty. Set MARIN_PREFIX to a folder or to a URL such as gs://bucket/path.")
    if "://" in prefix:
        scheme, _, rest = prefix.partition("://")
        if scheme == "file":
            return normalize_prefix(rest)
        _check_scheme(scheme, prefix)
        if not rest.strip("/"):
            raise SettingError(f"The prefix {prefix!r} names no place. Use a URL such as gs://bucket/path.")
        return prefix.rstrip("/")
    if Path(prefix).exists() and not Path(prefix).is_dir():
        raise SettingError(f"The prefix {prefix!r} is a file. Set MARIN_PREFIX to a folder or a URL.")
    return os.path.abspath(os.path.expanduser(prefix))


def ensure_dagster_home() -> str:
    """DAGSTER_HOME or its default, set for this process and its children.

    One that is not there is made, with the project's own dagster.yaml in it.
    """
    home = os.path.abspath(os.environ.get("DAGSTER_HOME") or str(project_root() / ".dagster"))
    if not os.path.exists(home):
        os.makedirs(home)
        settings = project_root() / ".dagster" / "dagster.yaml"
        if settings.exists():
            shutil.copy(settings, home)
    os.environ["DAGSTER_HOME"] = home
    return home


def _check_scheme(scheme: str, prefix: str) -> None:
    from fsspec.registry import known_implementations

    if scheme not in known_implementations:
        raise SettingError(
            f"The prefix {prefix!r} has the unknown scheme {scheme!r}. Use a folder, or a URL such as gs://bucket/path."
        )
