"""Python's garbage collector rests while pytest collects.

Ten thousand tests and the modules that they import are some million objects, which all live to the end. To look for
garbage among them again and again is a third of the time of a collection.
"""

from __future__ import annotations

import gc

import pytest


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    gc.enable()
