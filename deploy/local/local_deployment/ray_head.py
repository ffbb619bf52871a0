"""`python -m local_deployment.ray_head HOME`: the head of the deployment's Ray cluster, as one process to supervise.

What a killed one has left is ended first, as it holds the ports.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from local_deployment.layout import Layout, find_layout
from marin_resources.host.private_folder import NotPrivateError
from marin_resources.ray_tpu.cluster.local.head import start_head
from marin_resources.ray_tpu.cluster.local.processes import end_cluster
from marin_resources.ray_tpu.cluster.local.state import LocalCluster


def ray_cluster(layout: Layout) -> LocalCluster:
    return LocalCluster(
        id=layout.id,
        host=os.uname().nodename,
        address=f"http://127.0.0.1:{layout.ports['ray_dashboard']}",
        cpus=os.cpu_count() or 1,
        gcs_port=layout.ports["ray_gcs"],
        dashboard_port=layout.ports["ray_dashboard"],
        client_port=layout.ports["ray_client"],
        temp_dir=str(layout.ray_folder),
        token_path=str(layout.secret_path("ray_token")),
        log_path=str(layout.home / "logs/ray.log"),
    )


def main(home: Path) -> int:
    layout = find_layout(home)
    if layout is None:
        sys.stderr.write(f"{str(home)!r} has no deployment.\n")
        return 2
    cluster = ray_cluster(layout)
    end_cluster(cluster)

    def end(signum: int, frame: object) -> None:
        end_cluster(cluster)
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    try:
        start_head(cluster).wait()
    except NotPrivateError as error:
        sys.stderr.write(f"{error}\n")
    end_cluster(cluster)
    return 1  # a head ends only when it is broken


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
