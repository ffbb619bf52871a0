"""A bucket of the fake GCS, through plain requests."""

from __future__ import annotations

import pytest
from json_api import JsonApi


@pytest.fixture
def api(gcs_prefix: str) -> JsonApi:
    return JsonApi(gcs_prefix)
