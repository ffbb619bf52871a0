"""`ray`, as a script, for a further node on this machine: its address is 127.0.0.1, as the head's.

With the variables of `private_ray.py` Ray refuses a further node, which on macOS is not supported. Here that holds for
the processes of the node, and not for this one.
"""

from __future__ import annotations

import sys


def _loopback(address: str | None = None) -> str:
    """In the place of Ray's own function, which has the machine's other address."""
    return "127.0.0.1"


def main() -> None:
    from ray._private import ray_constants, services  # late, for its weight

    services.get_node_ip_address = _loopback
    ray_constants.ENABLE_RAY_CLUSTER = True
    from ray.scripts import scripts

    sys.exit(scripts.main())


if __name__ == "__main__":
    main()
