"""The variables that are known are those that the code reads and the reference documents."""

from __future__ import annotations

import re

from marin_resources.doctor.variables import INTERNAL, SETTINGS
from marin_resources.settings import project_root


def test_every_setting_is_known_and_documented() -> None:
    reference = (project_root() / "docs/reference/configuration.md").read_text()
    rows = set(re.findall(r"^\| `(MARIN_[A-Z_]+)` \|", reference, re.M))
    assert rows == SETTINGS
    code = [
        path for room in ("assets", "resources", "sensors") for path in (project_root() / f"marin_{room}").rglob("*.py")
    ]
    read = {name for path in code for name in re.findall(r"\bMARIN_[A-Z_]+\b", path.read_text())}
    assert read - {"MARIN_PREFIXES"} <= SETTINGS | INTERNAL
