"""Each line of `tests/slow_tests.txt` is a test that exists."""

from __future__ import annotations

from pages import ROOT


def test_each_line_is_a_test_that_exists() -> None:
    lines = (ROOT / "tests/slow_tests.txt").read_text().splitlines()
    assert lines == sorted(set(lines))
    for line in lines:
        file, *names = line.partition("[")[0].split("::")
        assert (f"def {names[-1]}(" if names else "def test_") in (ROOT / file).read_text(), line
