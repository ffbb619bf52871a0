"""Print the log of the latest attempt at an output; with --follow, also new lines until the attempt has ended.

The log is `.marin/attempts/<n>.log` below the path of the output, on a disk or in a bucket. While a worker on another
machine computes, its log reaches the bucket every few seconds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from marin_assets.cli.step_argument import add_places, add_step, chosen_output_node
from marin_assets.run.options import FailedError, OptionError, prefix_of
from marin_assets.run.output import print_line, print_stderr
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.storage.control.control import require_reachable
from marin_resources.storage.files import exists
from marin_resources.storage.output.attempts import latest_attempt, log_path
from marin_resources.storage.paths import is_local

POLL_S, BUCKET_POLL_S = 0.2, 2.0
SETTLE_S = 5.0
"""A worker uploads the last lines when it has ended."""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_step(parser)
    add_places(parser)
    parser.add_argument("--attempt", type=int, metavar="N", help="this attempt (default: the latest)")
    parser.add_argument("--follow", action="store_true", help="until it has ended")


def run(options: argparse.Namespace) -> int:
    # late, for its weight
    from marin_resources.ray_tpu.log.attempt_log import LogFollower, local_log

    store = store_at(prefix_of(options))
    require_reachable(store.prefix)
    output = chosen_output_node("logs", options).output
    path = store.locate(output)
    latest = latest_attempt(path)
    if not latest:
        raise FailedError(f"No attempt at {output.label} has begun, at {path}")
    attempt = latest if options.attempt is None else options.attempt
    if not 1 <= attempt <= latest:
        raise OptionError(f"marin logs: --attempt is {attempt}, expected 1 to {latest}, the latest of {output.label}.")
    log = log_path(path, attempt)
    if options.follow:
        end = follow(path, attempt, print_line)
        print_stderr(f"attempt {attempt} has ended: {end}")
    elif exists(log) or exists(local_log(log)):
        LogFollower(log, print_line).finish()
    else:
        raise FailedError(f"Attempt {attempt} at {output.label} has no log at {log}")
    return 0


def follow(path: str, attempt: int, on_line: Callable[[str], None]) -> str:
    """Call `on_line` with each line of the attempt's log until it has ended; return how it has ended."""
    # late, as above
    from marin_resources.ray_tpu.log.attempt_log import LogFollower
    from marin_resources.storage.output.attempt_watch import AttemptWatch

    follower, watch, here = LogFollower(log_path(path, attempt), on_line), AttemptWatch(path, attempt), is_local(path)
    ran = False
    while (end := watch.end()) is None:
        ran = True
        follower.poll()
        time.sleep(POLL_S if here else BUCKET_POLL_S)
    if ran and not here:
        time.sleep(SETTLE_S)
    follower.finish()
    return end
