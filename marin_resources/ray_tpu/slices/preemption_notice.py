"""The cloud's notice that this machine is about to be preempted, passed on to Ray: the node is drained.

Google's metadata server answers `instance/preempted` with TRUE from 30 s before a spot machine is stopped (Google
Cloud, "Preemptible VM instances"). A request with `wait_for_change` is answered when that changes. GCE_METADATA_HOST
names another server, as in Google's own libraries.
"""

from __future__ import annotations

import logging
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from marin_resources.ray_tpu.ray_internals import drain_node

NOTICE_S = 30.0
"""From the notice to the end of the machine."""
ANSWER_S = 60.0
"""Time limit of one request, which waits for a change."""
PAUSE_S = 10.0
"""After a request that failed."""
HOST_VARIABLE, DEFAULT_HOST = "GCE_METADATA_HOST", "metadata.google.internal"

log = logging.getLogger(__name__)


@contextmanager
def watched(on_notice: Callable[[], None]) -> Iterator[None]:
    """Call `on_notice` in another thread when the notice comes, while the block runs."""
    over = threading.Event()
    threading.Thread(target=_watch, args=(on_notice, over), name="preemption-notice", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def drain_this_node() -> None:
    """Drain this node, which is gone in half a minute: Ray places nothing here any more, and notifies the job."""
    import ray  # late, for its weight

    drain_node(ray.get_runtime_context().get_node_id(), NOTICE_S, "the machine is about to be preempted")


def _watch(on_notice: Callable[[], None], over: threading.Event) -> None:
    logged = False
    while not over.is_set():
        try:
            if _is_preempted():
                on_notice()
                return
        except (OSError, ValueError) as error:
            if not logged:
                log.warning("the metadata server cannot be asked for a notice of preemption: %s", error)
            logged = True
            over.wait(PAUSE_S)


def _is_preempted() -> bool:
    host = os.environ.get(HOST_VARIABLE) or DEFAULT_HOST
    url = f"http://{host}/computeMetadata/v1/instance/preempted?wait_for_change=true&timeout_sec={ANSWER_S:g}"
    request = urllib.request.Request(url, headers={"Metadata-Flavor": "Google"})
    with urllib.request.urlopen(request, timeout=ANSWER_S + PAUSE_S) as response:
        return response.read().strip() == b"TRUE"
