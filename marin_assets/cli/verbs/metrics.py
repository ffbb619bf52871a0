"""Serve metrics for Prometheus at http://HOST:PORT/metrics, until Ctrl-C: runs, steps, slices, sensors, the store.

They are read from Dagster's database at DAGSTER_HOME and from the prefix, at each scrape. Counters of steps begin at
zero with this process. With --once they are printed, and nothing is served.
"""

from __future__ import annotations

import argparse
import signal

from marin_assets.cli.ports import add_port, require_free
from marin_assets.run.options import add_prefix, prefix_of
from marin_assets.run.output import print_line, print_raw

DEFAULT_PORT = 9464
HOST = "127.0.0.1"


def add_options(parser: argparse.ArgumentParser) -> None:
    add_prefix(parser)
    parser.add_argument("--host", default=HOST, help=f"the address to listen at (default: {HOST})")
    parser.add_argument("--once", action="store_true", help="print the metrics once, and end")
    add_port(parser, DEFAULT_PORT, "the address")


def run(options: argparse.Namespace) -> int:
    # late, for their weight
    from prometheus_client import CollectorRegistry, generate_latest, start_http_server

    from marin_resources.configuration.settings import ensure_dagster_home
    from marin_resources.dagster_fixes.databases import open_instance
    from marin_resources.metrics.collector import MarinCollector

    if not options.once:
        require_free(options.host, options.port, "metrics")
    prefix = prefix_of(options)
    ensure_dagster_home()
    with open_instance() as instance:
        registry = CollectorRegistry()
        registry.register(MarinCollector(instance, prefix))
        if options.once:
            print_raw(generate_latest(registry).decode())
            return 0
        server, thread = start_http_server(options.port, options.host, registry)
        print_line(f"metrics at http://{options.host}:{options.port}/metrics")
        signal.signal(signal.SIGTERM, lambda *_: server.shutdown())
        try:
            thread.join()
        finally:
            server.shutdown()
    return 0
