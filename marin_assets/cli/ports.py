"""The port that a verb listens at."""

from __future__ import annotations

import argparse
import socket

from marin_assets.run.options import OptionError

MAX_PORT = 65535


def add_port(parser: argparse.ArgumentParser, default: int | None, host: str) -> None:
    """Add the option --port. `default` None: a free one."""
    shown = "a free one" if default is None else default
    parser.add_argument("--port", type=_port, default=default, metavar="N", help=f"of {host} (default: {shown})")


def require_free(host: str, port: int, verb: str, *, maybe: str = "", like: str = "") -> None:
    """Raise OptionError, with a free port, if another process listens on this one.

    `maybe` is the command that may have taken it, `like` another way to choose the port, with the place "{port}".
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # one that was closed a moment ago is free
        try:
            probe.bind((host, port))
        except PermissionError:
            raise OptionError(f"marin {verb}: port {port} is reserved for root. Choose one above 1023.") from None
        except socket.gaierror:
            raise OptionError(f"marin {verb}: there is no address {host!r} here. Use 127.0.0.1, or 0.0.0.0.") from None
        except OSError:
            other = _free_port(host)
            ways = f"{like.format(port=other)}, or " * bool(like) + f"marin {verb} --port {other}"
            raise OptionError(
                f"marin {verb}: port {port} is taken, maybe by another `{maybe or f'marin {verb}'}`. Stop that one, or "
                f"choose another port: {ways}."
            ) from None


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _port(text: str) -> int:
    """Parse a port. Raise argparse.ArgumentTypeError."""
    if not text.isdecimal() or not 1 <= int(text) <= MAX_PORT:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected a number from 1 to {MAX_PORT}")
    return int(text)
