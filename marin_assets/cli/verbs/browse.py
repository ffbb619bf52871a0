"""Show the data of outputs in a browser: documents, attributes, samples and tokens, row by row, until Ctrl-C.

The server only reads. It is on this machine alone, but for --host. A step opens at its output, a path below the prefix
at that file or folder; with --difference either opens at its difference from another. Without a step the first page
lists the outputs; --compare opens the answers of several evaluations. The address is printed. Exit code 1 if the step
has no output.
"""

from __future__ import annotations

import argparse

from marin_assets.browse.errors import BrowseError, NotComparableError
from marin_assets.browse.links import shown_prefixes
from marin_assets.browse.places import Place, Places
from marin_assets.browse.query import address
from marin_assets.browse.serve import HOST, listen, open_browser, serve
from marin_assets.browse.stored.answers.samples import require_different, require_several, samples_at
from marin_assets.browse.stored.state import owner_of
from marin_assets.cli.ports import add_port, require_free
from marin_assets.cli.step_argument import add_places, chosen_node
from marin_assets.documents.formats import is_readable
from marin_assets.run.options import FailedError, OptionError, prefix_of
from marin_assets.run.output import print_line
from marin_resources.configuration.data_browser import browser_host
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.storage.control.control import require_reachable
from marin_resources.storage.files import exists
from marin_resources.storage.output.store import Store


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", nargs="?", metavar="STEP|PATH", help="a step, or a path below the prefix")
    parser.add_argument("--partition", metavar="KEY", help="this partition of the step")
    parser.add_argument(
        "--difference", metavar="STEP|PATH", help="open at the difference of the rows, from this output to the first"
    )
    parser.add_argument(
        "--compare",
        nargs="+",
        metavar="STEP|PATH",
        help="open the answers of these evaluations side by side, question by question",
    )
    parser.add_argument("--task", metavar="TASK", help="with --compare: the questions of this task")
    parser.add_argument("--metric", metavar="METRIC", help="with --compare: right and wrong by this metric")
    add_places(parser)
    add_port(parser, None, HOST)
    parser.add_argument(
        "--host",
        default=HOST,
        metavar="ADDRESS",
        help=f"address to listen at, 0.0.0.0 in a container (default: {HOST})",
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    parser.add_argument("--also", action="append", default=[], metavar="PREFIX", help="show this prefix too")
    parser.add_argument(
        "--host-name", action="append", default=[], metavar="NAME", help="answer requests for this host too"
    )


def run(options: argparse.Namespace) -> int:
    store = store_at(prefix_of(options))
    require_reachable(store.prefix)
    prefixes = [*shown_prefixes(store), *options.also]
    target = first_address(options, store, Places(prefixes))
    if not options.host:  # for a socket, all addresses
        raise OptionError("marin browse: --host is empty, expected an address. Use 127.0.0.1, or 0.0.0.0.")
    require_free(options.host, options.port or 0, "browse")
    with listen(options.port or 0, options.host) as listening:
        page = f"http://{options.host}:{listening.getsockname()[1]}{target}"
        print_line(f"{page}  (Ctrl-C ends it)")
        serve(
            listening,
            prefixes,
            hosts=[*options.host_name, *filter(None, [browser_host()])],
            on_start=(lambda: None) if options.no_browser else (lambda: open_browser(page)),
        )
    return 0


def first_address(options: argparse.Namespace, store: Store, places: Places) -> str:
    """The address of the step or the path that was given; that of the first page without either."""
    if options.compare is not None:
        return _compared_address(options, store, places)
    for option in ("task", "metric"):
        if getattr(options, option) is not None:
            raise OptionError(f"marin browse: got --{option} without --compare, expected both. Name the evaluations.")
    if options.target is None:
        for name in ("partition", "difference"):
            if getattr(options, name) is not None:
                raise OptionError(f"marin browse: got --{name} without a step, expected both. Name the step.")
        return "/"
    place = _place_of(options, options.target, store, places)
    if options.difference is not None:
        before = _place_of(options, options.difference, store, places)
        return address("difference", path=place.text, before=before.text)
    return address("rows" if is_readable(place.name) else "output", path=place.text)


def _compared_address(options: argparse.Namespace, store: Store, places: Places) -> str:
    """The address of the answers of several evaluations. Raises OptionError for one, the same twice, one without."""
    if options.target is not None:
        raise OptionError(
            f"marin browse: got {options.target!r} and --compare, expected one of them. Name all evaluations after "
            "--compare."
        )
    for name in ("partition", "difference"):
        if getattr(options, name) is not None:
            raise OptionError(
                f"marin browse: got --compare and --{name}, expected one of them. Name a partition by its path."
            )
    try:
        require_several(options.compare)
        chosen = [samples_at(places, _place_of(options, target, store, places).text) for target in options.compare]
        require_different(chosen)
    except NotComparableError as error:
        raise OptionError(f"marin browse --compare: {error}") from None
    texts = [samples.place.text for samples in chosen]
    return address("models", model=texts, task=options.task, metric=options.metric)


def _place_of(options: argparse.Namespace, target: str, store: Store, places: Places) -> Place:
    """The place of a path, or of the output of a step. Raises FailedError for a step without an output."""
    place = _place_below(target, places) if options.partition is None else None
    if place is not None:
        return place
    node = chosen_node("browse", target, options.partition, options.script)
    path = store.locate(node.output)
    if not exists(path):
        raise FailedError(f"{node.output.label} has no output at {path}: no attempt has begun. Compute it first.")
    return places.resolve(path)


def _place_below(target: str, places: Places) -> Place | None:
    """The place of a whole path, or of a path below the prefix that is in an output; None for the name of a step.

    Raises BrowseError for a whole path that is not shown, FailedError for one at which nothing exists.
    """
    is_whole = target.startswith("/") or "://" in target
    try:
        place = places.resolve(target)
    except BrowseError:
        if is_whole:
            raise
        return None  # a selection may have any characters
    if is_whole and not exists(place.path):
        raise FailedError(f"Nothing exists at {target!r}. Name an output, or a file of it.")
    return place if is_whole or (exists(place.path) and owner_of(places, place) is not None) else None
