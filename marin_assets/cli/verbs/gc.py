"""List the outputs that nothing needs, the cheapest to make again first; collect, restore or purge them.

An output is needed by an experiment that ran within --keep-days, by the experiments of this code location, by a pin, an
adopted output or a snapshot, or by an attempt that is at work. Without an option, nothing is changed.

--collect   an output is not complete any more; its data stay. A run that reaches it brings it back
--restore   bring back what was collected
--purge     remove the data of what was collected, once the grace time is over

Exit code 0; 1 if a named output stays as it is, if what is needed is not known, or if a record cannot be read:
then what was complete before its output is kept.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from marin_assets.cli.render.gc_lines import collected_json, collected_lines, done_json, done_lines, json_of, lines_of
from marin_assets.inspection.gc.actions import Done, collect, purge_expired, restore
from marin_assets.inspection.gc.proposals import Choice, matches, require_pattern, total_bytes
from marin_assets.inspection.gc.stored_outputs import StoredOutputs
from marin_assets.inspection.gc.survey import Definitions, Look, look, read_definitions
from marin_assets.run.options import OptionError, add_prefix, prefix_of
from marin_assets.run.output import print_line, print_stderr
from marin_resources.host.process import user_name
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.storage.collect.withdraw import Terms
from marin_resources.storage.control.control import refuse_store_without_conditions, require_reachable
from marin_resources.storage.manifest.bytes_progress import readable_bytes
from marin_resources.storage.output.notes.collection import Collected
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import name_below
from marin_resources.storage.usage.cost_estimate import price_list

KEEP_DAYS = 90.0
GRACE_DAYS = 7.0
LEAST_GRACE = timedelta(hours=1)
DAY = timedelta(days=1)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("output", nargs="*", help="only these: part of a path below the prefix; none: all")
    verbs = parser.add_mutually_exclusive_group()
    verbs.add_argument("--collect", action="store_true", help="withdraw what is listed")
    verbs.add_argument("--restore", action="store_true", help="bring collected outputs back")
    verbs.add_argument("--purge", action="store_true", help="remove the data of what is past its grace time")
    verbs.add_argument("--collected", action="store_true", help="list what is collected, and until when")
    parser.add_argument(
        "--keep-days",
        type=_days,
        default=KEEP_DAYS,
        metavar="N",
        help=f"keep what was made, or named by an experiment, in the last N days (default: {KEEP_DAYS:g})",
    )
    parser.add_argument(
        "--older-than", type=_days, default=0.0, metavar="N", help="only what was used last more than N days ago"
    )
    parser.add_argument(
        "--grace-days",
        type=_days,
        metavar="N",
        help=f"of --collect: how long it can be restored (default: {GRACE_DAYS:g}, at least an hour)",
    )
    parser.add_argument("--why", default="", metavar="TEXT", help="of --collect: a reason, kept with each output")
    parser.add_argument("--yes", action="store_true", help="of --collect and --purge: do not ask")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_prefix(parser)


def run(options: argparse.Namespace) -> int:
    _refuse_useless(options)
    store = store_at(prefix_of(options))
    refuse_store_without_conditions(store.prefix)
    require_reachable(store.prefix)
    if options.collected or options.restore:
        notes = _chosen(StoredOutputs(store.prefix).collected, options.output, store.prefix)
        return _restore(store, notes, options) if options.restore else _list_collected(store, notes, options)
    definitions = read_definitions()
    for sentence in definitions.unknown:
        print_stderr(sentence)
    if definitions.unknown and (options.collect or options.purge):
        print_stderr(
            "What these experiments need is not known, so nothing is changed. Correct them, or move them away."
        )
        return 1
    choice = Choice(
        patterns=() if options.purge else tuple(options.output),
        keep_days=options.keep_days,
        older_than_days=options.older_than,
    )
    survey = look(store, definitions, choice, price_list())
    for sentence in survey.stored.damaged.values():
        print_stderr(sentence)
    code = _act(store, survey, definitions, choice, options)
    return 1 if survey.stored.unknown else code


def _act(store: Store, survey: Look, definitions: Definitions, choice: Choice, options: argparse.Namespace) -> int:
    if options.purge:
        return _purge(store, survey, options)
    if not (options.collect and options.yes):
        _list(store, survey, options)
    if not options.collect or not survey.proposals.proposed:
        return 0
    if not options.yes:
        if not _agreed(_what(survey), f"They come back with marin gc --restore for {_grace(options) / DAY:g} days"):
            return 0
        # while a person has read and answered, an output may have come into use
        survey = look(store, definitions, choice, price_list())
    terms = Terms(by=user_name() or "?", grace=_grace(options), why=options.why)
    return _report(store, collect(store, survey.proposals.proposed, terms), "collected", options)


def _what(survey: Look) -> str:
    proposed = survey.proposals.proposed
    return f"Collect {len(proposed)} outputs, {readable_bytes(total_bytes(proposed))}"


def _list(store: Store, survey: Look, options: argparse.Namespace) -> None:
    if options.json:
        print_line(json.dumps({"prefix": store.prefix, **json_of(survey)}, indent=2))
        return
    for line in lines_of(survey, store.prefix, datetime.now(UTC), named=bool(options.output)):
        print_line(line)


def _list_collected(store: Store, notes: list[Collected], options: argparse.Namespace) -> int:
    if options.json:
        print_line(json.dumps({"prefix": store.prefix, "collected": collected_json(notes)}, indent=2))
        return 0
    for line in collected_lines(notes, store.prefix, datetime.now(UTC)):
        print_line(line)
    return 0


def _restore(store: Store, notes: list[Collected], options: argparse.Namespace) -> int:
    if not options.output:
        raise OptionError("marin gc --restore: got no output, expected at least one. marin gc --collected lists them.")
    return _report(store, restore(store, notes), "restored", options)


def _purge(store: Store, survey: Look, options: argparse.Namespace) -> int:
    now = datetime.now(UTC)
    notes = _chosen(survey.stored.collected, options.output, store.prefix)
    expired = [note for note in notes if note.is_over(now)]
    early = [note for note in notes if not note.is_over(now)] if options.output else []
    for note in early:
        print_stderr(f"{note.relative} can be restored until {note.until}, and is kept until then.")
    size = readable_bytes(sum(note.bytes or 0 for note in expired))
    if (
        expired
        and not options.yes
        and not _agreed(f"Remove {len(expired)} collected outputs, {size}, for good", "Only a run makes them again")
    ):
        return 0
    code = _report(store, purge_expired(store, expired, survey.roots, now), "removed", options)
    return 1 if early else code


def _report(store: Store, done: Iterable[Done], word: str, options: argparse.Namespace) -> int:
    """Print what became of each output. 1 if one that was named stays as it is."""
    outcomes = []
    for outcome in done:
        outcomes.append(outcome)
        if not options.json:
            for line in done_lines(outcome, word):
                print_line(line)
    changed = [outcome for outcome in outcomes if not outcome.kept]
    if options.json:
        print_line(json.dumps({"prefix": store.prefix, word: done_json(outcomes)}, indent=2))
    else:
        size = readable_bytes(sum(outcome.bytes for outcome in changed))
        print_line(f"{len(changed)} {word}, {size}; {len(outcomes) - len(changed)} kept, at {store.prefix}")
    return 1 if options.output and len(changed) < len(outcomes) else 0


def _chosen(notes: list[Collected], patterns: list[str], prefix: str) -> list[Collected]:
    """The collected outputs that the patterns select, or all. Raises OptionError for one that selects none."""
    if not patterns:
        return notes
    chosen: dict[str, Collected] = {}
    for given in patterns:
        pattern = name_below(given, prefix)
        require_pattern(pattern)
        matching = [note for note in notes if matches(note.relative, note.output.label, pattern)]
        if not matching:
            raise OptionError(
                f"marin gc: {given!r} finds no collected output below {prefix!r}. marin gc --collected lists them; a "
                "run makes again what was removed for good."
            )
        chosen |= {note.relative: note for note in matching}
    return list(chosen.values())


def _agreed(question: str, consequence: str) -> bool:
    print_stderr(f"{question}? {consequence}. [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _grace(options: argparse.Namespace) -> timedelta:
    days = GRACE_DAYS if options.grace_days is None else options.grace_days
    if days * DAY < LEAST_GRACE:
        raise OptionError(
            f"marin gc: --grace-days is {days:g}, expected at least an hour (0.042): a run that has looked at its "
            "inputs is about to read them."
        )
    return days * DAY


def _refuse_useless(options: argparse.Namespace) -> None:
    if options.collect:
        _grace(options)  # which refuses one that is too short
    elif options.grace_days is not None or options.why:
        raise OptionError("marin gc: --grace-days and --why are of --collect. Pass that too.")
    changes = options.collect or options.purge
    if options.yes and not changes:
        raise OptionError("marin gc: --yes is of --collect and --purge. Pass one of them.")
    if changes and not options.yes and (options.json or not sys.stdin.isatty()):
        raise OptionError("marin gc: nobody can be asked here whether to continue. Pass --yes.")


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not 0 <= days < 100_000:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected a number of days from 0")
    return days
