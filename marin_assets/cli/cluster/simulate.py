"""What checkpoints, sizes of slices and preemptions do to goodput: the slice runner on a simulated clock.

    marin cluster simulate --hosts 1024 --days 30 --lost-every 10d --slice-hosts 8,64 --policy 1m,5m,20m,young,daly
    marin cluster simulate --trace preemptions.csv --slice-hosts 8 --policy 10m,daly --plot goodput.svg

A trace has the columns host,gone_s,back_s. Without one, hosts are lost at random, --lost-every on average, and come
back after --back-after. Durations are numbers with s, m, h or d.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from marin_assets.cli.options import OptionError
from marin_assets.cli.output import print_line, print_stderr

if TYPE_CHECKING:
    from marin_resources.ray_tpu.simulate.study import Outcome, Policy
    from marin_resources.ray_tpu.simulate.trace import Trace

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
FORMULAS = ("young", "daly")
COLUMNS = (
    "slice",
    "slices",
    "lost every",
    "policy",
    "interval",
    "tries",
    "goodput",
    "work",
    "lost",
    "startup",
    "waited",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trace", type=Path, metavar="FILE", help="when hosts were away: host,gone_s,back_s")
    parser.add_argument("--hosts", type=int, metavar="N", help="hosts in all (default: the trace's, else 1024)")
    parser.add_argument("--days", type=float, metavar="N", help="how long (default: the trace's length, else 30)")
    parser.add_argument("--lost-every", default="10d", metavar="T", help="mean time of a host (default: 10d)")
    parser.add_argument("--back-after", default="15m", metavar="T", help="mean time until it is back (default: 15m)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of what is drawn (default: 0)")
    parser.add_argument("--slice-hosts", default="8,64", metavar="N,…", help="sizes of slices (default: 8,64)")
    parser.add_argument(
        "--policy",
        default="1m,2m,5m,10m,20m,40m,80m,young,daly",
        metavar="T,…",
        help="work between two checkpoints: times, or young or daly (default: 1m to 80m and both)",
    )
    parser.add_argument("--save", default="30s", metavar="T", help="how long a checkpoint takes (default: 30s)")
    parser.add_argument("--startup", default="3m", metavar="T", help="from a try's begin to its work (default: 3m)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw it, as .svg or .png; needs matplotlib")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    # late, for their weight
    from marin_resources.ray_tpu.simulate.job import Work
    from marin_resources.ray_tpu.simulate.study import study
    from marin_resources.ray_tpu.simulate.trace import TraceError

    try:
        trace = _trace(options)
    except TraceError as error:
        raise OptionError(f"marin cluster simulate: {error}") from None
    work = Work(
        startup_s=_seconds(options.startup, "--startup"), interval_s=0.0, save_s=_seconds(options.save, "--save")
    )
    sizes, policies = _sizes(options.slice_hosts, trace.hosts), _policies(options.policy)
    done = 0

    def progress(outcome: Outcome) -> None:
        nonlocal done
        done += 1
        print_stderr(f"{done} of {len(sizes) * len(policies)}: {outcome.hosts} hosts, {_shown(outcome)}")

    outcomes = study(trace, sizes=sizes, policies=policies, work=work, progress=progress)
    if options.json:
        print_line(json.dumps([_finite(asdict(outcome)) for outcome in outcomes], indent=2))
    else:
        for line in lines_of(outcomes):
            print_line(line)
    if options.plot is not None:
        from marin_assets.cli.cluster.goodput_plot import plot

        plot(outcomes, options.plot)
        print_stderr(f"wrote {options.plot}")
    return 0


def lines_of(outcomes: list[Outcome]) -> list[str]:
    """A table; the best policy of each size has a star."""
    best = {
        o.hosts: max((each for each in outcomes if each.hosts == o.hosts), key=lambda e: e.useful) for o in outcomes
    }
    rows = [COLUMNS, *(_row(outcome, outcome is best[outcome.hosts]) for outcome in outcomes)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    return ["  ".join(f"{text:>{width}}" for text, width in zip(row, widths, strict=True)) for row in rows]


def _row(outcome: Outcome, best: bool) -> tuple[str, ...]:
    shares = (outcome.goodput, outcome.useful, outcome.lost, outcome.startup, outcome.waited)
    shown = [f"{share:.2%}" for share in shares]
    shown[1] += "*" if best else ""
    return (
        f"{outcome.hosts} hosts",
        str(outcome.slices),
        _duration(outcome.mean_s),
        _shown(outcome),
        _duration(outcome.interval_s),
        str(outcome.tries),
        *shown,
    )


def _shown(outcome: Outcome) -> str:
    return outcome.policy if isinstance(outcome.policy, str) else _duration(outcome.policy)


def _duration(seconds: float) -> str:
    for unit in ("d", "h", "m"):
        if seconds >= SECONDS[unit] and not math.isinf(seconds):
            return f"{seconds / SECONDS[unit]:.3g}{unit}"
    return "never" if math.isinf(seconds) else f"{seconds:.3g}s"


def _finite(fields: dict[str, object]) -> dict[str, object]:
    return {name: None if value == math.inf else value for name, value in fields.items()}


def _trace(options: argparse.Namespace) -> Trace:
    from marin_resources.ray_tpu.simulate.trace import draw_trace, read_trace

    if options.hosts is not None and options.hosts < 1:
        raise OptionError(f"marin cluster simulate: --hosts is {options.hosts}, expected 1 or more.")
    if options.days is not None and not 0 < options.days < math.inf:
        raise OptionError(f"marin cluster simulate: --days is {options.days:g}, expected a number above 0.")
    horizon_s = None if options.days is None else options.days * SECONDS["d"]
    if options.trace is not None:
        return read_trace(options.trace, hosts=options.hosts, horizon_s=horizon_s)
    return draw_trace(
        hosts=options.hosts or 1024,
        horizon_s=horizon_s or 30 * SECONDS["d"],
        mean_s=_seconds(options.lost_every, "--lost-every"),
        back_s=_seconds(options.back_after, "--back-after"),
        seed=options.seed,
    )


def _seconds(text: str, option: str) -> float:
    found = DURATION.fullmatch(text.strip())
    seconds = float(found[1]) * SECONDS[found[2]] if found else 0.0
    if not seconds:
        raise OptionError(f"marin cluster simulate: {option} has {text!r}, expected a time above 0, such as 30s or 5m.")
    return seconds


def _sizes(text: str, hosts: int) -> list[int]:
    sizes = [int(item) if item.strip().isdecimal() else 0 for item in text.split(",")]
    for size in sizes:
        if not 1 <= size <= hosts:
            raise OptionError(
                f"marin cluster simulate: --slice-hosts is {text!r}, expected numbers of hosts from 1 to {hosts}."
            )
    return sizes


def _policies(text: str) -> list[Policy]:
    items = [item.strip() for item in text.split(",")]
    return [item if item in FORMULAS else _seconds(item, "--policy") for item in items]
