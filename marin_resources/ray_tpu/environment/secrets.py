"""Load the secrets that a step names into the environment of the job that runs it. Nothing submitted holds a value: the
node looks it up, in this order:

    the environment of the job
    MARIN_SECRETS_DIR        a folder with one file for each, named as the variable     default: /run/secrets
    MARIN_SECRETS_PROJECT    a Google project, whose Secret Manager has them by the same names
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, MutableMapping

from marin_resources.configuration.secret_manager import SecretError, access_secret

__all__ = ["DEFAULT_FOLDER", "SecretError", "load_secrets"]

DEFAULT_FOLDER = "/run/secrets"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def load_secrets(names: Iterable[str], environ: MutableMapping[str, str] = os.environ) -> None:
    """Set each of the variables in `environ` unless it is set. Raises SecretError for the first without a value."""
    for name in names:
        if name not in environ:
            environ[name] = _find(name, environ)


def _find(name: str, environ: MutableMapping[str, str]) -> str:
    if not _NAME.fullmatch(name):
        raise SecretError(f"A secret has the name {name!r}, expected letters, digits and '_'. Fix the step's env.")
    file = os.path.join(environ.get("MARIN_SECRETS_DIR") or DEFAULT_FOLDER, name)
    project = environ.get("MARIN_SECRETS_PROJECT")
    if os.path.exists(file):
        return _read(name, file)
    if not project:
        raise SecretError(
            f"The variable {name!r} is not set on this node, {file!r} does not exist, and MARIN_SECRETS_PROJECT names "
            "no Google project with a Secret Manager. Put the value into one of these places."
        )
    try:
        return access_secret(f"projects/{project}/secrets/{name}")
    except SecretError as error:
        raise SecretError(f"The variable {name!r} is not set on this node, {file!r} does not exist. {error}") from None


def _read(name: str, file: str) -> str:
    """Return the content of the file without the newline that editors add at its end."""
    try:
        with open(file, encoding="utf-8") as opened:
            return opened.read().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SecretError(
            f"The variable {name!r} is not set on this node, and {file!r} cannot be read ({type(error).__name__}). "
            "Make it a text file that this user may read."
        ) from None
