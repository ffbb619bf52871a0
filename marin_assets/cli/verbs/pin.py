"""Keep outputs, with a reason: marin gc does not collect a pinned output, nor what it was made from.

--list shows the pins, --remove takes them back. What was collected and is pinned now comes back.

Exit code 0; 1 if something that the pin needs was removed already.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from datetime import UTC, datetime

from marin_assets.catalog.code_location import select_nodes
from marin_assets.inspection.gc.actions import restore
from marin_assets.inspection.gc.ancestors import made_from
from marin_assets.inspection.gc.stored_outputs import StoredOutputs
from marin_assets.run.options import OptionError, add_prefix, prefix_of
from marin_assets.run.output import print_line, print_stderr
from marin_assets.step.values import ConfigError
from marin_resources.host.process import user_name
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.storage.collect.pins import Pin, list_pins, remove_pin, write_pin
from marin_resources.storage.control.control import refuse_store_without_conditions, require_reachable
from marin_resources.storage.output.notes.collection import Collected
from marin_resources.storage.output.status import read_status
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join, name_below
from marin_resources.types.output import Status

SHOWN = 8


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("step", nargs="*", help="steps of this code location, or paths of outputs below the prefix")
    parser.add_argument("--why", metavar="TEXT", help="the reason, which marin gc shows")
    parser.add_argument("--alone", action="store_true", help="keep it alone, and not what it was made from")
    parser.add_argument("--list", action="store_true", help="list the pins")
    parser.add_argument("--remove", action="store_true", help="take pins back")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_prefix(parser)


def run(options: argparse.Namespace) -> int:
    _refuse_useless(options)
    store = store_at(prefix_of(options))
    refuse_store_without_conditions(store.prefix)
    require_reachable(store.prefix)
    if options.list:
        return _list(store, list_pins(store.prefix), options)
    return _remove(store, options) if options.remove else _pin(store, options)


def _pin(store: Store, options: argparse.Namespace) -> int:
    stored = StoredOutputs(store.prefix)
    paths = list(dict.fromkeys(path for name in options.step for path in outputs_of(name, stored)))
    at, by = datetime.now(UTC).isoformat(timespec="seconds"), user_name() or "?"
    pins = [Pin(output=path, why=options.why, by=by, at=at, alone=options.alone) for path in paths]
    for pin in pins:
        write_pin(store.prefix, pin)
    stored = StoredOutputs(store.prefix)  # read again: what was collected before the pin was there comes back
    prefixes = (store.prefix, *store.regions)
    notes = {note.relative: note for pin in pins for note in collected_inputs(pin, stored, prefixes)}
    for sentence in stored.damaged.values():
        print_stderr(sentence)
    gone = len(stored.unknown)  # what these were made from is not known, and stays collected
    for done in restore(store, notes.values()):
        gone += bool(done.kept)
        print_stderr(f"{done.relative}: {done.kept or 'it was collected, and is complete again'}")
    _print(pins, "pinned", store, options)
    return 1 if gone else 0


def _remove(store: Store, options: argparse.Namespace) -> int:
    pins = list_pins(store.prefix)
    chosen = list(dict.fromkeys(pin for name in options.step for pin in _named(pins, name, store.prefix)))
    for pin in chosen:
        remove_pin(store.prefix, pin.output)
    _print(chosen, "no longer pinned", store, options)
    return 0


def _named(pins: Sequence[Pin], name: str, prefix: str) -> list[Pin]:
    given = name_below(name, prefix)
    matching = [pin for pin in pins if given in (pin.output, pin.output.rpartition("-")[0])]
    if not matching:
        raise OptionError(f"marin pin: {name!r} is not pinned below {prefix!r}. marin pin --list shows the pins.")
    return matching


def _list(store: Store, pins: Sequence[Pin], options: argparse.Namespace) -> int:
    if options.json:
        print_line(json.dumps({"prefix": store.prefix, "pins": [vars(pin) for pin in pins]}, indent=2))
        return 0
    for pin in pins:
        alone = ", alone" if pin.alone else ""
        print_line(f"{pin.output}: {pin.why} ({pin.by}, {pin.at[:10]}{alone})")
    print_line(f"{len(pins)} pin{'s' * (len(pins) != 1)} at {store.prefix}")
    return 0


def _print(pins: Sequence[Pin], word: str, store: Store, options: argparse.Namespace) -> None:
    if options.json:
        print_line(json.dumps({"prefix": store.prefix, "pins": [vars(pin) for pin in pins]}, indent=2))
        return
    for pin in pins:
        print_line(f"{word}: {pin.output}")


def _refuse_useless(options: argparse.Namespace) -> None:
    if options.list and (options.step or options.remove):
        raise OptionError("marin pin: --list takes no step, and no --remove. Pass it alone.")
    if options.list or options.remove:
        if options.why is not None or options.alone:
            raise OptionError("marin pin: --why and --alone are of a new pin. Leave them out.")
        if options.remove and not options.step:
            raise OptionError("marin pin: got no step to --remove, expected at least one. marin pin --list shows them.")
        return
    if not options.step:
        raise OptionError("marin pin: got no step, expected at least one, or --list.")
    if not (options.why or "").strip():
        names = ", ".join(options.step)
        raise OptionError(
            f'marin pin: got no reason for {names}, expected --why "…": who frees storage next year will ask.'
        )


def outputs_of(name: str, stored: StoredOutputs) -> list[str]:
    """The paths below the prefix that a name stands for: that of a stored output or of a version with partitions, a
    path or a label; or those of the steps of this code location that it selects. All of them are complete or collected.

    Raises ConfigError.
    """
    given = name_below(name, stored.prefix)
    stored_paths = _known(stored)
    if given in stored_paths or _is_complete(stored, given):
        return [given]
    labels = {stored_output.label: stored_output.relative for stored_output in stored.all if stored_output.partition}
    if given in labels:
        return [labels[given]]
    try:
        _, nodes = select_nodes([name], None)
    except ConfigError:
        return [_only_version(given, stored_paths, stored.prefix)]
    paths = [node.output.relative() for node in nodes]
    missing = [path for path in paths if path not in stored_paths and not _is_complete(stored, path)]
    if missing:
        raise ConfigError(
            f"{name!r} selects {_listed(missing)}, which {'is' if len(missing) == 1 else 'are'} not complete at "
            f"{stored.prefix!r}. Materialize it first, or give the path of a stored output."
        )
    return paths


def collected_inputs(pin: Pin, stored: StoredOutputs, prefixes: Sequence[str]) -> list[Collected]:
    """The collected ones of the outputs that the pin keeps."""
    retained = {pin.output, *([] if pin.alone else made_from(pin.output, stored, prefixes))}
    return [note for note in stored.collected if retained.intersection((note.relative, f"{note.name}-{note.version}"))]


def _known(stored: StoredOutputs) -> set[str]:
    notes = stored.collected
    whole = {f"{note.name}-{note.version}" for note in notes}
    return {*stored.by_path, *stored.partitions_of, *(note.relative for note in notes), *whole}


def _is_complete(stored: StoredOutputs, relative: str) -> bool:
    """Whether an output without a marker is complete: one of Marin's, or one at a path of its own."""
    return read_status(join(stored.prefix, relative)) is Status.SUCCESS


def _only_version(name: str, stored_paths: set[str], prefix: str) -> str:
    """The stored version of a step that this code location does not have."""
    versions = sorted(path for path in stored_paths if path.rpartition("-")[0] == name)
    if len(versions) == 1:
        return versions[0]
    if versions:
        raise ConfigError(
            f"{name!r} has {len(versions)} stored versions: {_listed(versions)}. Give one of these paths."
        )
    raise ConfigError(
        f"{name!r} is neither an output below {prefix!r} nor a step of this code location. Give a path below the "
        "prefix, such as 'tokenized/web-3f2a1c', or part of a step's name."
    )


def _listed(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    return f"{', '.join(map(repr, paths[:SHOWN]))}{more}"
