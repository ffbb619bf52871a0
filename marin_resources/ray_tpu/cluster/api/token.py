"""The token that a Ray cluster asks for: where it is found, and how it stays unseen.

Looked for in this order; the first place that has one is used:

    the cluster's own settings   its secret, or its file (which is where RAY_AUTH_TOKEN_PATH comes in, too)
    RAY_AUTH_MODE=disabled       none is sent
    RAY_AUTH_TOKEN               the token itself
    RAY_AUTH_TOKEN_PATH          a file with it
    ~/.ray/auth_token            where Ray puts one
"""

from __future__ import annotations

import math
import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from marin_resources.ray_tpu.cluster.settings import ClusterSettings
from marin_resources.settings import SettingError

PLACES = "set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN_PATH to a file with the token (or RAY_AUTH_TOKEN to the token)"
"""What to do, for the end of a sentence."""
HIDDEN = "<token>"
SECRET_LIFE_S = 300.0
"""So long a secret is not asked for again: a step begins several conversations with its cluster."""


class TokenError(SettingError):
    """A token that cannot be had or used: one sentence, never with the token."""


class Token:
    """A token that nothing prints, copies or stores by accident."""

    __slots__ = ("_reveal", "source")

    def __init__(self, value: str, source: str) -> None:
        """`source` is told to people: the file or the variable that it is from."""
        if not value or not value.isascii() or not value.isprintable() or " " in value:
            raise TokenError(
                f"The Ray token from {source} cannot be one, expected letters and digits on one line. Write it anew: "
                "ray get-auth-token --generate."
            )
        self.source = source
        self._reveal = lambda: value  # in a closure, so that no attribute has it

    def header(self) -> dict[str, str]:
        """The one place where it comes out."""
        return {"Authorization": f"Bearer {self._reveal()}"}

    def hidden_in(self, text: str) -> str:
        """The text without the token: a server may say back what it was sent."""
        return text.replace(self._reveal(), HIDDEN)

    def __repr__(self) -> str:
        return f"Token(from {self.source})"

    def __copy__(self) -> Token:
        return self

    def __deepcopy__(self, memo: object) -> Token:
        return self

    def __getstate__(self) -> NoReturn:
        raise TypeError("A token is not written anywhere: find it again with find_token.")

    def __reduce__(self) -> NoReturn:
        self.__getstate__()


def find_token(settings: ClusterSettings, environ: Mapping[str, str] = os.environ) -> Token | None:
    """The token for this cluster; None if there is none to send. May block. Raises TokenError."""
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
        raise TokenError(f"RAY_AUTH_MODE is 'token' and there is no token: {PLACES}.")
    return None


def _from_file(path: str) -> Token:
    place = os.path.abspath(os.path.expanduser(path))
    try:
        with open(place) as file:
            mode = os.fstat(file.fileno()).st_mode
            value = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise TokenError(f"The Ray token's file {place!r} cannot be read ({why}): {PLACES}.") from None
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        raise TokenError(
            f"The Ray token's file {place!r} is open to every user of this machine (mode {stat.S_IMODE(mode):04o}): "
            "chmod 600 it, or set RAY_AUTH_MODE=disabled if the cluster asks for no token."
        )
    if not value:
        raise TokenError(f"The Ray token's file {place!r} is empty: {PLACES}.")
    return Token(value, f"the file {place!r}")


def _from_secret_manager(resource: str) -> Token:
    from marin_resources.secret_manager import SecretError, access_secret

    got_s, token = _SECRETS.get(resource, (-math.inf, None))
    if token is not None and time.monotonic() - got_s < SECRET_LIFE_S:
        return token
    try:
        value = access_secret(resource)
    except SecretError as error:
        raise TokenError(f"The Ray token cannot be had: {error}") from None
    token = Token(value.strip(), f"the secret {resource!r}")
    _SECRETS[resource] = (time.monotonic(), token)
    return token


_SECRETS: dict[str, tuple[float, Token]] = {}
