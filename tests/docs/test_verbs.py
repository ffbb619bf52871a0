"""docs/reference/cli.md has a section for each verb of `marin`, with an example that `test_docs.py` runs."""

from __future__ import annotations

import re

import pytest
from pages import FENCE, ROOT

from marin_assets.cli.parsers import commands
from marin_assets.cli.verb_groups import VERBS

PAGE = ROOT / "docs/reference/cli.md"
HEADING = re.compile(r"^##+ `marin ([\w -]+)`$", re.MULTILINE)
ELSEWHERE = {"generate": "tests/marin_assets/stages/evaluate/test_sample_text.py"}
"""Verbs whose example is not run with the page, and the test that runs them."""
COMMANDS = sorted({*VERBS, *(" ".join(words) for words in commands())})


def sections() -> dict[str, str]:
    """The text below the heading of each verb, up to the next verb's."""
    _, *parts = HEADING.split(PAGE.read_text())
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_verb_has_a_section_with_an_example_that_is_run(command: str) -> None:
    text = sections().get(command)
    assert text is not None, f"{PAGE.name} has no heading '`marin {command}`'"
    if any(other.startswith(f"{command} ") for other in COMMANDS):
        return  # a group: its verbs have sections of their own
    examples = [block for block in FENCE.finditer(text) if block["kind"] in ("console", "bash")]
    wanted = re.compile(rf"\b(marin|marin_assets\.cli) {command}\b")
    shown = [block for block in examples if wanted.search(block["text"])]
    assert shown, f"the section '`marin {command}`' of {PAGE.name} has no example of it"
    if command in ELSEWHERE:
        assert f'"{command}"' in (ROOT / ELSEWHERE[command]).read_text()
    else:
        assert any(block["mark"] is None for block in shown), f"no example of marin {command} is run"


def test_no_section_is_about_a_verb_that_does_not_exist() -> None:
    assert set(sections()) <= set(COMMANDS)
