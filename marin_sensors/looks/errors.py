"""Errors of a look into the store that are complete sentences: a sensor skips its tick with them."""

from __future__ import annotations

from marin_resources.settings import SettingError
from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.versioned_json import ControlFileError

REPORTED = (ControlFileError, SettingError, UnavailableError)
