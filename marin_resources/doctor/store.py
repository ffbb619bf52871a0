"""Checks of the faults that stop every request to the store of a prefix: name, credentials, a dead endpoint."""

from __future__ import annotations

import json
import os
import re
import socket
from urllib.parse import urlsplit

from marin_resources.configuration.settings import SettingError
from marin_resources.storage.control.control import require_reachable
from marin_resources.storage.paths import StoreKind, kind_of, without_scheme

UNEXPANDED = re.compile(r"\$\{?\w+\}?|%\w+%")
BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]+[a-z0-9]")
GOOGLE_KEY = "GOOGLE_APPLICATION_CREDENTIALS"
S3_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
TIMEOUT_S = 5.0


def require_store(prefix: str) -> None:
    """Raise SettingError and UnavailableError for a mistake by which no request succeeds, within seconds."""
    if unexpanded := UNEXPANDED.search(prefix):
        raise SettingError(
            f"The prefix {prefix!r} has {unexpanded[0]!r}, which nothing replaces by the value of that variable. Write "
            "the value."
        )
    kind, bucket = kind_of(prefix), without_scheme(prefix).partition("/")[0]
    if kind not in (StoreKind.GCS, StoreKind.S3):
        return
    if not BUCKET.fullmatch(bucket):
        raise SettingError(
            f"The prefix {prefix!r} names the bucket {bucket!r}, which is no name of one: expected 3 or more of small "
            "letters, digits, '-', '_' and '.'. Correct MARIN_PREFIX."
        )
    if kind is StoreKind.GCS:
        _require_google_key()
    else:
        _require_endpoint()
        _require_amazon_credentials()
    require_reachable(prefix)


def _require_google_key() -> None:
    path = os.environ.get(GOOGLE_KEY, "")
    if not path or os.environ.get("STORAGE_EMULATOR_HOST"):
        return
    advice = "Name the JSON file of a key, or unset it and log in: gcloud auth application-default login."
    try:
        with open(path, encoding="utf-8") as file:
            key = json.load(file)
    except OSError as error:
        raise SettingError(f"{GOOGLE_KEY} is {path!r}, which cannot be read ({error.strerror}). {advice}") from error
    except ValueError as error:
        raise SettingError(f"{GOOGLE_KEY} is {path!r}, which is no JSON. {advice}") from error
    if not isinstance(key, dict) or "type" not in key:
        raise SettingError(f"{GOOGLE_KEY} is {path!r}, which holds no credentials of Google. {advice}")


def _require_endpoint() -> None:
    """Amazon's own needs no variable; its client tries another one for half a minute."""
    for name in S3_ENDPOINTS:
        value = os.environ.get(name, "")
        if not value:
            continue
        try:
            url = urlsplit(value)
            host, port = url.hostname, url.port or (443 if url.scheme == "https" else 80)
        except ValueError:
            host, port = None, 0
        if not host or url.scheme not in ("http", "https"):
            raise SettingError(f"{name} is {value!r}, expected an address that begins with http:// or https://.")
        try:
            socket.create_connection((host, port), timeout=TIMEOUT_S).close()
        except OSError as error:
            why = error.strerror or error
            raise SettingError(
                f"{name} is {value!r}, which cannot be connected to ({why}). Start that store, or correct the variable."
            ) from error
        return


def _require_amazon_credentials() -> None:
    import botocore.session

    if botocore.session.Session().get_credentials() is None:
        raise SettingError(
            "No credentials of S3 are on this machine. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run: aws "
            "configure."
        )
