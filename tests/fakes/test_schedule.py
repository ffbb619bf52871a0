"""The schedule of tests names places that exist."""

from __future__ import annotations

from pathlib import Path

from schedule import SHARED, SLOW_FOLDERS, WITH_S3, groups_of_files

TESTS = Path(__file__).parents[1]


def test_files_that_need_the_same_expensive_thing_are_a_group() -> None:
    groups = groups_of_files(TESTS.parent)
    assert set(groups.values()) == SHARED.keys()
    assert groups["tests/stories/test_real_text_becomes_an_evaluated_model.py"] == "quickstart"
    assert groups["tests/stories/test_killed_at_every_step.py"] == "quickstart"
    assert groups["tests/marin_assets/stages/train/test_train_lm.py"] == "jax"


def test_every_place_with_s3_and_every_slow_folder_has_tests() -> None:
    for place in WITH_S3:
        assert [path for path in TESTS.glob(f"{place}*") if path.is_dir() or path.suffix == ".py"], place
    for folder in SLOW_FOLDERS:
        assert list(TESTS.glob(f"**/{folder}/test_*.py")), folder
