"""What another process needs to run a shard as the process of its stage would: taken along, and entered there.

It imports what its stage imports, has the variables and packages that the step asks for, prints into the log of its
attempt, and moves bytes on the account of its step.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from types import TracebackType
from typing import Any

from marin_resources.ray_tpu.environment.packages import provide_packages
from marin_resources.ray_tpu.environment.secrets import provide
from marin_resources.ray_tpu.log.attempt_log import VARIABLE as ATTEMPT_LOG
from marin_resources.ray_tpu.log.attempt_log import is_pumped, join_output, local_log
from marin_resources.ray_tpu.shards.job_allocation import needs
from marin_resources.storage.paths import is_local
from marin_resources.storage.transfer.account import Account, charged_to, current_account
from marin_resources.wire.reference import add_import_paths, import_paths

LAST_LINES_S = 3.0
"""Ray looks for new lines ten times in a second, for new processes that print twice, if its node has the time."""


def surroundings() -> dict[str, Any]:
    """This process's, as plain values; of secrets the names."""
    account = current_account()
    return {
        "import_paths": import_paths(),
        "log_path": os.environ.get(ATTEMPT_LOG),
        "pumped": is_pumped(),
        "account": vars(account) if account else None,
        **vars(needs()),
    }


@contextmanager
def entered(there: Mapping[str, Any]) -> Iterator[None]:
    """Have the surroundings of another process in this one while the block runs."""
    add_import_paths(there["import_paths"])
    provide(there["env"])
    with charged_to(Account(**there["account"]) if there["account"] else None), _output(there):
        _provide_packages(there["packages"])
        yield


def prints_far_away(there: Mapping[str, Any]) -> bool:
    """Whether Ray brings to its stage what this process prints, and not the log that both append to."""
    path = there["log_path"]
    return path is not None and not is_local(path) and not os.path.exists(local_log(path))


class LastLines:
    """Lets what shards have printed on other machines arrive before the block is over. Who is told to stop has no time
    for that."""

    def __init__(self, nodes: int) -> None:
        self.come = False
        """Whether there may be any."""
        self._nodes = nodes

    def __enter__(self) -> LastLines:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        path = os.environ.get(ATTEMPT_LOG)
        failed = isinstance(error, Exception) and self._nodes > 1 and path is not None and not is_local(path)
        if failed or (self.come and error is None):
            time.sleep(LAST_LINES_S)


def _output(there: Mapping[str, Any]) -> AbstractContextManager[None]:
    if there["log_path"] is None:
        return nullcontext()
    secrets = [os.environ[name] for name in there["env"]]
    return join_output(there["log_path"], secrets=secrets, pumped=there["pumped"])


@cache
def _provide_packages(requirements: tuple[str, ...]) -> None:
    """Once in a process: what is installed is looked through each time."""
    provide_packages(requirements)
