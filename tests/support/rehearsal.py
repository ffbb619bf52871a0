"""The whole deployment on loopback, as `make deploy-local` brings it up, and people who log in to it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import psutil
import pytest
from person import Person
from running import wait_until

pytest.importorskip("supervisor", reason="the group `rehearsal` is not installed: make rehearsal")

from local_deployment import lifecycle
from local_deployment.layout import EXPERIMENTS, Layout
from local_deployment.tools import APACHE, OPENIDC

from marin_resources.ray_tpu.cluster.local.head import free_ports


class Rehearsal:
    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def person(self, name: str | None = None) -> Person:
        """Before the proxy; logged in if named."""
        person = Person(self.layout.url)
        if name is not None:
            person.log_in(name)
        return person

    def looker(self, name: str | None = None) -> Person:
        """Before the data browser's name at the proxy; logged in there if named."""
        person = Person(self.layout.browse_url)
        if name is not None:
            person.log_in(name)
        return person

    def beside_the_proxy(self, webserver: str = "webserver") -> Person:
        """Who reaches a webserver itself."""
        return Person(f"http://127.0.0.1:{self.layout.ports[webserver]}")

    def supervisor(self, *arguments: str) -> str:
        return lifecycle.supervisorctl(self.layout, *arguments)

    def pid(self, service: str) -> int:
        return int(self.supervisor("pid", service))

    def processes(self) -> list[psutil.Process]:
        """All that belong to the deployment, with runs and the jobs on its cluster."""
        return lifecycle.processes_of(self.layout)

    def await_all(self, timeout_s: float = 120) -> None:
        wait_until(lambda: not lifecycle.silent(self.layout), "all services answer", timeout_s=timeout_s)

    @contextmanager
    def instance(self) -> Iterator[dg.DagsterInstance]:
        """Dagster's, as the services see it."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.layout.environment().items():
                patch.setenv(name, value)
            with dg.DagsterInstance.from_config(str(self.layout.home / "dagster")) as instance:
                yield instance


@contextmanager
def rehearsal(experiments: Path = EXPERIMENTS) -> Iterator[Rehearsal]:
    """All of it up, in a folder of its own; removed with the block."""
    if not (APACHE.exists() and OPENIDC.exists()) and os.geteuid() != 0:
        pytest.skip("Apache with mod_auth_openidc is not installed, and only root can install it.")
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as folder:
        home = Path(folder) / "deployment"
        try:
            yield Rehearsal(lifecycle.up(home, free_ports(1)[0], experiments))
        finally:
            lifecycle.down(home)
