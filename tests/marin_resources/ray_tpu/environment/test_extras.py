from __future__ import annotations

import pytest

from marin_resources.ray_tpu.environment.extras import MissingRequirementError, check_environment


def test_a_step_that_asks_for_nothing_has_all_it_needs() -> None:
    check_environment("raw/a", (), ())


def test_an_extra_that_is_installed_is_enough() -> None:
    check_environment("raw/a", ("curate",), ())


def test_an_unknown_extra_is_named_with_those_there_are() -> None:
    with pytest.raises(MissingRequirementError, match=r"'raw/a' requests the extra 'trian'.*some of curate, .*train"):
        check_environment("raw/a", ("trian",), ())


def test_a_package_that_is_not_installed_is_named_with_the_command_that_brings_it() -> None:
    with pytest.raises(MissingRequirementError) as caught:
        check_environment("raw/a", ("curate", "vllm"), ())
    assert str(caught.value) == (
        "Step 'raw/a' needs vllm, which is not installed. Run: uv sync --inexact --extra curate --extra vllm"
    )


def test_a_variable_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TOKEN", "secret")
    check_environment("raw/a", (), ("A_TOKEN",))
    monkeypatch.delenv("A_TOKEN")
    with pytest.raises(MissingRequirementError, match="'raw/a' requires the variable 'A_TOKEN', which is not set"):
        check_environment("raw/a", (), ("A_TOKEN",))
