"""The context in which a shard runs: collected in the process of its stage, activated in the process of the shard.

The shard's process then imports what the stage imports, has the variables and packages of the step, prints into the
log of the attempt, writes as the attempt, and charges bytes to the account of the step.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from types import TracebackType
from typing import Any

from marin_resources.ray_tpu.environment.packages import install_packages
from marin_resources.ray_tpu.environment.secrets import load_secrets
from marin_resources.ray_tpu.log.attempt_log import VARIABLE as ATTEMPT_LOG
from marin_resources.ray_tpu.log.attempt_log import is_pumped, join_output, local_log
from marin_resources.ray_tpu.log.redact import secrets_of
from marin_resources.ray_tpu.shards.job_allocation import shard_requirements
from marin_resources.storage.filesystems.sharing import group_may_write, group_writes
from marin_resources.storage.paths import is_local
from marin_resources.storage.transfer.account import Account, charged_to, current_account
from marin_resources.storage.upload.writer import Writer, current_writer, writing_as
from marin_resources.wire.reference import add_import_paths, import_paths

OUTPUT_DELAY_S = 3.0
"""Ray polls for new lines ten times a second and for new printing processes twice, if its node is not busy."""


def worker_context() -> dict[str, Any]:
    """Return the context of this process as plain values; of secrets only the names."""
    account, writer = current_account(), current_writer()
    return {
        "import_paths": import_paths(),
        "log_path": os.environ.get(ATTEMPT_LOG),
        "pumped": is_pumped(),
        "account": vars(account) if account else None,
        "writer": str(writer) if writer else None,
        "group_writes": group_writes(),
        **vars(shard_requirements()),
    }


@contextmanager
def activate(context: Mapping[str, Any]) -> Iterator[None]:
    """Run the block in the context of another process."""
    add_import_paths(context["import_paths"])
    load_secrets(context["env"])
    account = Account(**context["account"]) if context["account"] else None
    writer = Writer.parse(context["writer"]) if context["writer"] else None
    umask = group_may_write(context["group_writes"])
    with umask, charged_to(account), writing_as(writer), _join_output(context):
        _install_packages(context["packages"])
        yield


def prints_through_ray(context: Mapping[str, Any]) -> bool:
    """Whether Ray forwards this process's output to its stage, because the log's spool is on another machine."""
    path = context["log_path"]
    return path is not None and not is_local(path) and not os.path.exists(local_log(path))


class AwaitRemoteOutput:
    """At the end of the block, wait 3 s for the last output of remote shards, unless the process has to stop."""

    def __init__(self, nodes: int) -> None:
        self.expected = False
        """Whether a shard printed through Ray."""
        self._nodes = nodes

    def __enter__(self) -> AwaitRemoteOutput:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        path = os.environ.get(ATTEMPT_LOG)
        failed = isinstance(error, Exception) and self._nodes > 1 and path is not None and not is_local(path)
        if failed or (self.expected and error is None):
            time.sleep(OUTPUT_DELAY_S)


def _join_output(context: Mapping[str, Any]) -> AbstractContextManager[None]:
    if context["log_path"] is None:
        return nullcontext()
    return join_output(context["log_path"], secrets=secrets_of(context["env"]), pumped=context["pumped"])


@cache
def _install_packages(requirements: tuple[str, ...]) -> None:
    """Cached, as each call lists the installed distributions."""
    install_packages(requirements)
