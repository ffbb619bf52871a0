"""What a job's log shows of Ray's own daemons."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

import pytest
from ray._private import worker

from marin_resources.ray_tpu.ray_internals import filter_printed_lines
from marin_resources.ray_tpu.shards.connection import shown_lines

OUT_OF_MEMORY = "1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed"
DEAD = "The node with node id: c01e and address: 10.0.0.2 has been marked dead because the detector has missed"
STACK = [
    "Raylet is terminated. Termination is unexpected. Possible reasons include: (1) SIGKILL\n  ray::operator<<()",
    "[2026-11-24 16:58:11,126 C 1378 1378] (raylet) node_manager.cc:519: GCS consider this node to be dead.",
    "*** StackTrace Information ***",
    "/opt/ray/core/src/ray/raylet/raylet(+0x23ccf4) [0x55dff2f0fcf4] main",
]


def test_what_a_job_needs_to_know_is_shown() -> None:
    assert shown_lines("raylet", [*STACK, OUT_OF_MEMORY, DEAD]) == [OUT_OF_MEMORY, DEAD]
    assert shown_lines("gcs_server", ["Failed to remove 1 bundle(s)"]) == []
    assert shown_lines(4242, ["a function prints", *STACK]) == ["a function prints", *STACK]


def test_ray_prints_only_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "print_to_stdstream", worker.print_to_stdstream)  # what is set below ends with the test
    filter_printed_lines(shown_lines)
    filter_printed_lines(shown_lines)
    with redirect_stdout(io.StringIO()) as printed:
        for lines in (STACK, [OUT_OF_MEMORY]):
            worker.print_to_stdstream({"pid": "raylet", "lines": lines, "is_err": False}, ignore_prefix=False)
    assert OUT_OF_MEMORY in printed.getvalue()
    assert "Raylet is terminated" not in printed.getvalue()
