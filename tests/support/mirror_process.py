"""`python -m mirror_process VERB PATH…`: a process of a step that reads through the mirror. Its account is in the
environment.

    read     read each path, and say how each went: "<path> read <bytes>", or "<path> refused <sentence>"
    tree     the same by their plain paths
    reserve  reserve 1000 bytes, say "reserved", and wait to be killed
"""

from __future__ import annotations

import sys


def main(verb: str, paths: list[str]) -> None:
    from marin_resources.storage.mirror import local_path_of, mirror_filesystem
    from marin_resources.storage.transfer.budget import TransferBudgetError, current_budget

    print("ready", flush=True)
    sys.stdin.readline()
    if verb == "reserve":
        with current_budget().reserve(paths[0], 1000, whole=True, source="near"):
            print("reserved", flush=True)
            sys.stdin.readline()
        return
    for path in paths:
        try:
            if verb == "tree":
                print(path, "read", local_path_of(f"mirror://{path}"), flush=True)
            else:
                print(path, "read", len(mirror_filesystem().cat_file(path)), flush=True)
        except TransferBudgetError as error:
            print(path, "refused", error, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
