"""Stub for Ray's dashboard agent in local runs: reports to the node, which waits for its ports, that it has none.

A script with the arguments of Ray's agent, which takes 2 s of a CPU to start. It reports as a Ray that is installed
without its dashboard does, and ends with the raylet, whose pipe is its stdin. Python alone, as it must start at once.
"""

import os
import sys

PORTS = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port")
NO_PORT = "-1"


def main(arguments: list[str]) -> None:
    """`arguments` has --session-dir=, the folder in which a node waits for a file for each port, and --node-id=."""
    options = dict(word.split("=", 1) for word in arguments if "=" in word)
    for port in PORTS:
        path = f"{options['--session-dir']}/{port}_{options['--node-id']}"
        with open(f"{path}.tmp", "w") as file:
            file.write(NO_PORT)
        os.replace(f"{path}.tmp", path)
    sys.stdin.buffer.read()


if __name__ == "__main__":
    main(sys.argv[1:])
