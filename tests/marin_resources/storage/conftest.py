"""The regions of the mirror, for its tests."""

from __future__ import annotations

from pathlib import Path

import mirrors
import pytest
from mirrors import Mirror


@pytest.fixture(params=["disk", "gcs", "mixed", "upward"])
def mirror(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    """Three regions: in folders, in buckets, the local one in a folder, the local one in a bucket."""
    return mirrors.declare(mirrors.fresh(request.param, tmp_path), monkeypatch)


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    return mirrors.declare(mirrors.fresh("disk", tmp_path), monkeypatch)
