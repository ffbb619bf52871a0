"""Each output has a folder of its own, and none lies below another output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from toy_steps import toy

from marin_assets import ConfigError, Step, mirrored, output_path_of
from marin_assets.step.graph import build_graph
from marin_assets.step.placement import refuse_overlaps
from marin_assets.step.values import InputName, this_output_path

A = toy("a")
B = toy("b")
HASHED = build_graph([A]).nodes[0].version.path


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        ([A.with_output_path("kept"), B.with_output_path("kept")], "'toy/a' and 'toy/b' would both be at 'kept'"),
        ([A.with_output_path("kept"), B.with_output_path("./kept//")], "'toy/a' and 'toy/b' would both be at 'kept'"),
        ([A, B.with_output_path(HASHED)], "'toy/a' and 'toy/b' would both be at 'toy/a-"),
        (
            [A.with_output_path("kept"), B.with_output_path("kept/b")],
            "'toy/b' at 'kept/b' would lie inside that of step",
        ),
        ([A, B.with_output_path(f"{HASHED}/deep/b")], "would lie inside that of step 'toy/a'"),
        ([A, B.with_output_path("toy")], "'toy/a' at 'toy/a-"),
        ([A.with_output_path("/x"), B.with_output_path("/x/y")], "'toy/b' at '/x/y' would lie inside"),
        ([A, A.with_output_path("kept")], "one version and different output paths, None and 'kept'"),
        ([A.with_output_path("gs://b/x"), B.with_output_path("gs://b/x/y")], "'gs://b/x/y' would lie inside"),
    ],
)
def test_places_that_meet_are_refused(steps: list[Step], sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        build_graph(steps)


def test_places_beside_one_another_are_fine() -> None:
    assert len(build_graph([A.with_output_path("kept/a"), B.with_output_path("kept/ab")])) == 2
    assert len(build_graph([A.with_output_path("kept/a"), B, A.with_output_path("kept/a")])) == 2


@pytest.mark.parametrize("path", ["../kept", "kept/../../x", "/x/../y", "gs://b/../x", ".."])
def test_an_override_that_leaves_its_folder_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match=r"in which '\.\.' leaves its folder|expected a path such as"):
        A.with_output_path(path)


@pytest.mark.parametrize("path", ["", ".", "/", "./"])
def test_an_override_that_is_no_folder_of_its_own_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="expected a path such as 'kept/pages'"):
        A.with_output_path(path)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (".marin", "in which '.marin' is a folder of control files"),
        ("kept/.marin/x", "in which '.marin' is a folder of control files"),
        ("/data/x/.marin", "in which '.marin' is a folder of control files"),
        ("gs://b/x/.marin/live", "in which '.marin' is a folder of control files"),
        (".hidden/x", "in which '.hidden' is a folder of control files"),
        ("experiments", "the folder where each run writes the file of its experiment"),
        ("./experiments//", "the folder where each run writes the file of its experiment"),
    ],
)
def test_an_override_at_a_folder_of_control_files_is_refused(path: str, said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        A.with_output_path(path)
    for fine in ("experiments/x", "./kept", "/home/me/.cache/x", "x.marin", "..x/y", "gs://b/experiments"):
        if not fine.startswith(".."):
            A.with_output_path(fine)


def test_a_path_below_an_output_stays_below_it() -> None:
    for wrong in (
        lambda: output_path_of(A, "../x"),
        lambda: A / "train" / "../../x",
        lambda: A.cd("x/../../y"),
        lambda: mirrored("../x"),
        lambda: this_output_path("../x"),
        lambda: InputName.hardcoded("../x"),
    ):
        with pytest.raises(ConfigError, match=r"'\.\.' leaves its folder"):
            wrong()
    assert (A / "..x" / "x..").name == "..x/x.."


def test_an_absolute_override_meets_a_relative_one_at_their_prefix(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="would lie inside"):
        refuse_overlaps([(f"{tmp_path}/kept", "a"), (f"{tmp_path}/kept/b", "b")])
