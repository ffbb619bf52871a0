"""Check the entries of speedruns below a folder: one sentence for each fault.

    marin speedrun check [FOLDER]

Keys that are missing or of another type, numbers that cannot be (a share of the peak above 1) or do not fit (tokens and
FLOPs), times that are none, and the same run twice. Nothing is downloaded.

Exit code 0; 1 if an entry has a fault.
"""

from __future__ import annotations

import argparse
import json

from marin_assets.run.output import print_line
from marin_assets.stages.report.speedruns.read import duplicates, read_entries

FOLDER = "speedruns"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", nargs="?", default=FOLDER, metavar="FOLDER", help=f"a folder, or one file (default: {FOLDER})"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    reads = read_entries(options.folder)
    faults = [(read, fault) for read in reads for fault in read.faults]
    faults += duplicates(reads)
    if options.json:
        listed = [{"entry": read.name, "path": read.path, "fault": fault} for read, fault in faults]
        print_line(json.dumps({"entries": len(reads), "faults": listed}, indent=2))
    else:
        for read, fault in faults:
            print_line(f"{read.path}: {fault}")
        print_line(f"{len(reads):,} {'entry' if len(reads) == 1 else 'entries'}, {_count(len(faults))}")
    return 1 if faults else 0


def _count(faults: int) -> str:
    return f"{faults or 'no'} fault{'s' * (faults != 1)}"
