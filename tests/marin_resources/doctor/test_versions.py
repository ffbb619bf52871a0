"""Installed packages, compared with what is declared."""

from __future__ import annotations

import dagster as dg

from marin_resources.doctor.finding import State
from marin_resources.doctor.versions import look, unmet_requirements


def test_packages_are_compared_with_what_is_declared() -> None:
    lines = ["dagster==1.0.0", "no-such-package>=1", "pytest>=1", "fcntl-for-windows; sys_platform == 'win32'"]
    version = dg.__version__
    expected = [f"dagster is {version}, expected ==1.0.0.", "no-such-package is not installed, expected >=1."]
    assert list(unmet_requirements(lines)) == expected


def test_this_environment_is_the_declared_one() -> None:
    [finding] = look()
    assert finding.state is State.OK
