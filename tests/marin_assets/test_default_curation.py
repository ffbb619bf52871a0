"""The steps that judge documents: a wrong argument is one sentence, before a step exists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from marin_assets import Step
from marin_assets.defaults import (
    default_consolidate,
    default_docstring_crawl,
    default_filters,
    default_languages,
    default_near_duplicates,
    default_personal_data,
    default_warc,
)
from marin_assets.step.values import ConfigError


@pytest.fixture(scope="module")
def documents() -> Step:
    return default_warc("mine", "gs://bucket/crawl")


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda documents: default_languages("a", documents, "en"), r"got languages='en', a str"),
        (lambda documents: default_filters("a", documents, ["c4@fineweb"]), r"got filters\[0\]='c4@fineweb', a str"),
        (lambda documents: default_near_duplicates("a", documents, minhash=3), r"got minhash=3"),
        (lambda documents: default_personal_data("a", documents, kinds="email"), r"got kinds='email', a str"),
        (lambda documents: default_consolidate("a", documents, [documents]), r'Pass steps by name: \{"filters": step'),
        (lambda documents: default_consolidate("a", documents, {"b": "path"}), r"got attributes\['b'\]='path', a str"),
        (lambda documents: default_docstring_crawl("a", "dagster"), r"got packages='dagster', a str"),
    ],
)
def test_a_wrong_argument_is_one_sentence(documents: Step, build: Callable[[Any], Step], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        build(documents)
