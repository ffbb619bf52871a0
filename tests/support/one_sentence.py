"""What an error says, if it is one sentence for a person."""

from __future__ import annotations

import pytest


def one_sentence(error: pytest.ExceptionInfo[Exception] | Exception) -> str:
    text = str(error if isinstance(error, Exception) else error.value)
    assert "\n" not in text
    assert "Traceback" not in text
    assert text.endswith(".")
    return text
