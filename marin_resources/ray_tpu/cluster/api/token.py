"""The token of a Ray cluster: where it is found, and how it stays hidden.

Places in order; the first one with a token is used:

    the cluster's settings       its secret, or its file (RAY_AUTH_TOKEN_PATH may have set that, too)
    RAY_AUTH_MODE=disabled       none is sent
    RAY_AUTH_TOKEN               the token itself
    RAY_AUTH_TOKEN_PATH          a file with the token
    ~/.ray/auth_token            where Ray stores one
"""

from __future__ import annotations

import math
import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from marin_resources.configuration.settings import SettingError
from marin_resources.ray_tpu.cluster.settings import ClusterSettings

TOKEN_ADVICE = (
    "set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN_PATH to a file with the token (or RAY_AUTH_TOKEN to the token)"
)
"""The advice at the end of an error sentence."""
HIDDEN = "<token>"
SECRET_TTL_S = 300.0
"""Time for which a secret is cached: a step opens several connections to its cluster."""


class TokenError(SettingError):
    """The token cannot be read or used: one sentence, never with the token."""


class Token:
    """A token that cannot be printed, copied or stored by accident."""

    __slots__ = ("_reveal", "source")

    def __init__(self, value: str, source: str) -> None:
        """`source` is the file or the variable, for messages."""
        if not value or not value.isascii() or not value.isprintable() or " " in value:
            raise TokenError(
                f"The Ray token from {source} cannot be one, expected letters and digits on one line. Write a new one: "
                "ray get-auth-token --generate."
            )
        self.source = source
        self._reveal = lambda: value  # in a closure, so that no attribute holds it

    def header(self) -> dict[str, str]:
        """The HTTP header. With `write`, the only method that reveals the token."""
        return {"Authorization": f"Bearer {self._reveal()}"}

    def redacted(self, text: str) -> str:
        """The text without the token: a server may echo its request."""
        return text.replace(self._reveal(), HIDDEN)

    def write(self, path: Path) -> None:
        """Write it to a file for its owner alone, where `find_token` and Ray read it. Raises TokenError."""
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(path, self._reveal())
        except OSError as error:
            raise TokenError(f"The Ray token cannot be written to {str(path)!r} ({error.strerror}).") from None

    def __repr__(self) -> str:
        return f"Token(from {self.source})"

    def __copy__(self) -> Token:
        return self

    def __deepcopy__(self, memo: object) -> Token:
        return self

    def __getstate__(self) -> NoReturn:
        raise TypeError("A token cannot be pickled: find it again with find_token.")

    def __reduce__(self) -> NoReturn:
        self.__getstate__()


def find_token(settings: ClusterSettings, environ: Mapping[str, str] = os.environ) -> Token | None:
    """Return the token for this cluster; None if none is to be sent. May block. Raise TokenError."""
    mode = environ.get("RAY_AUTH_MODE", "").strip().lower()
    path = environ.get("RAY_AUTH_TOKEN_PATH", "").strip()
    if settings.token_secret is not None:
        return _from_secret_manager(settings.token_secret)
    if settings.token_path is not None and settings.token_path != path:
        return _from_file(settings.token_path)
    if mode == "disabled":
        return None
    if value := environ.get("RAY_AUTH_TOKEN", "").strip():
        return Token(value, "RAY_AUTH_TOKEN")
    if path:
        return _from_file(path)
    if (default := Path(environ.get("HOME") or Path.home(), ".ray", "auth_token")).exists():
        return _from_file(str(default))
    if mode == "token":
        raise TokenError(f"RAY_AUTH_MODE is 'token' and there is no token: {TOKEN_ADVICE}.")
    return None


def default_token_path(environ: Mapping[str, str] = os.environ) -> Path:
    """The path of Ray's token: the file of RAY_AUTH_TOKEN_PATH, else ~/.ray/auth_token."""
    given = environ.get("RAY_AUTH_TOKEN_PATH", "").strip()
    return Path(given).expanduser() if given else Path(environ.get("HOME") or Path.home(), ".ray", "auth_token")


def write_private(path: Path, text: str) -> None:
    """Write atomically, never readable by other users."""
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w") as file:
        file.write(text)
    os.replace(beside, path)


def token_of_secret(resource: str) -> Token:
    """The token in Google's Secret Manager: "projects/p/secrets/s". May block. Raises TokenError."""
    return _from_secret_manager(resource)


def _from_file(path: str) -> Token:
    place = os.path.abspath(os.path.expanduser(path))
    try:
        with open(place) as file:
            mode = os.fstat(file.fileno()).st_mode
            value = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise TokenError(f"The Ray token's file {place!r} cannot be read ({why}): {TOKEN_ADVICE}.") from None
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        raise TokenError(
            f"The Ray token's file {place!r} is open to every user of this machine (mode {stat.S_IMODE(mode):04o}): "
            "chmod 600 it, or set RAY_AUTH_MODE=disabled if the cluster requires no token."
        )
    if not value:
        raise TokenError(f"The Ray token's file {place!r} is empty: {TOKEN_ADVICE}.")
    return Token(value, f"the file {place!r}")


def _from_secret_manager(resource: str) -> Token:
    # late, for its weight: few clusters keep their token there
    from marin_resources.configuration.secret_manager import SecretError, access_secret

    got_s, token = _SECRETS.get(resource, (-math.inf, None))
    if token is not None and time.monotonic() - got_s < SECRET_TTL_S:
        return token
    try:
        value = access_secret(resource)
    except SecretError as error:
        raise TokenError(f"The Ray token cannot be read: {error}") from None
    token = Token(value.strip(), f"the secret {resource!r}")
    _SECRETS[resource] = (time.monotonic(), token)
    return token


_SECRETS: dict[str, tuple[float, Token]] = {}
