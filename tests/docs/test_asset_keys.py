"""The reference's kinds of output and asset keys are those of the code."""

from __future__ import annotations

import re

import pytest
from pages import ROOT
from toy_steps import ToyConfig, make

from marin_assets import Step
from marin_assets.catalog.asset_key import OUTPUT_KINDS, group_of, key_of
from marin_assets.step.graph import build_graph

PAGE = (ROOT / "docs/reference/api.md").read_text()
ROWS = re.findall(r"^\| `([^`|]+)` \| `([^`|]+)` \| `([^`|]+)` \| `([^`|]+)` \|$", PAGE, re.MULTILINE)


def test_the_kinds_of_output_are_those_of_the_code() -> None:
    [sentence] = re.findall(r"^Kinds of output are (.*?)\.\n", PAGE, re.MULTILINE | re.DOTALL)
    kinds = re.findall(r"`(\w+)`", sentence)
    assert set(kinds) == OUTPUT_KINDS
    assert len(kinds) == len(OUTPUT_KINDS)


@pytest.mark.parametrize(("name", "key", "group", "label"), ROWS)
def test_the_key_of_a_name_is_that_of_the_code(name: str, key: str, group: str, label: str) -> None:
    [node] = build_graph([Step(name=name, fn=make, config=ToyConfig())])
    assert ("/".join(key_of(node)), group_of(node), key_of(node)[-1]) == (key, group, label)


def test_the_page_has_a_table_of_keys() -> None:
    assert len(ROWS) >= 4
