"""A bucket of GCS, as plain requests see it."""

from __future__ import annotations

import pytest
from json_api import JsonApi


@pytest.fixture
def api(gcs_prefix: str) -> JsonApi:
    return JsonApi(gcs_prefix)
