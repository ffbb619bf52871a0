"""deploy/prometheus and deploy/grafana with a real Prometheus and a real Alertmanager, where Debian's are installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import dagster as dg
import pytest
import yaml
from prometheus_client import CollectorRegistry, start_http_server
from running import ROOT, wait_until

from marin_resources.metrics.collector import MarinCollector

RULES = ROOT / "deploy/prometheus/rules.yml"
DASHBOARD = ROOT / "deploy/grafana/marin.json"
PROGRAMS = ("prometheus", "promtool", "prometheus-alertmanager")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        any(shutil.which(program) is None for program in PROGRAMS),
        reason="Debian's prometheus and prometheus-alertmanager are not installed",
    ),
]


def test_every_alert_is_valid_and_fires_in_its_unit_test_and_not_before() -> None:
    for arguments in (["check", "rules", RULES], ["test", "rules", RULES.with_name("rules_test.yml")]):
        done = subprocess.run(["promtool", *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_unit_test_in_which_it_fires() -> None:
    alerts = {rule["alert"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]}
    tests = yaml.safe_load(RULES.with_name("rules_test.yml").read_text())["tests"]
    cases = [case for test in tests for case in test["alert_rule_test"]]
    assert {case["alertname"] for case in cases if case["exp_alerts"]} == alerts
    assert {case["alertname"] for case in cases if not case["exp_alerts"]} == alerts


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.loads(answer.read())


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


@contextmanager
def receiver() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A webhook that keeps the alerts it is sent."""
    alerts: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            alerts.extend(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["alerts"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", alerts
        server.shutdown()


@contextmanager
def program(*command: str | Path, ready: str, log: Path) -> Iterator[None]:
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT) as process:
        try:
            wait_until(lambda: answers(ready) or process.poll() is not None, f"{command[0]} at {ready}")
            assert process.poll() is None, log.read_text()
            yield
        finally:
            process.terminate()


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dg.op
def fails() -> None:
    raise ValueError("on purpose")


@dg.job
def failing_job() -> None:
    fails()


def test_failed_steps_reach_a_person_and_the_dashboard_asks_what_there_is(
    instance: dg.DagsterInstance, prefix: Path, tmp_path: Path
) -> None:
    registry = CollectorRegistry()
    registry.register(MarinCollector(instance, str(prefix)))
    exporter, _ = start_http_server(0, "127.0.0.1", registry)
    prometheus, alertmanager = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    with receiver() as (hook, alerts):
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES)],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [host_of(alertmanager)]}]}]},
            "scrape_configs": [
                {"job_name": "marin", "static_configs": [{"targets": [f"127.0.0.1:{exporter.server_port}"]}]}
            ],
        }
        routes = {
            "route": {"receiver": "people", "group_wait": "0s"},
            "receivers": [{"name": "people", "webhook_configs": [{"url": hook}]}],
        }
        (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
        (tmp_path / "alertmanager.yml").write_text(yaml.safe_dump(routes))
        with (
            program(
                "prometheus-alertmanager",
                f"--config.file={tmp_path / 'alertmanager.yml'}",
                f"--storage.path={tmp_path / 'alertmanager'}",
                f"--web.listen-address={host_of(alertmanager)}",
                "--cluster.listen-address=",
                ready=f"{alertmanager}/-/ready",
                log=tmp_path / "alertmanager.log",
            ),
            program(
                "prometheus",
                f"--config.file={tmp_path / 'prometheus.yml'}",
                f"--storage.tsdb.path={tmp_path / 'prometheus'}",
                f"--web.listen-address={host_of(prometheus)}",
                ready=f"{prometheus}/-/ready",
                log=tmp_path / "prometheus.log",
            ),
        ):
            wait_until(lambda: series(prometheus, "marin_steps_total"), "the first scrape")
            for _ in range(4):
                assert not failing_job.execute_in_process(instance=instance, raise_on_error=False).success
            wait_until(
                lambda: [one for one in alerts if one["labels"]["alertname"] == "MarinStepsFail"], "the alert", 120
            )
            for query in queries():
                series(prometheus, query)  # a query that Prometheus cannot read is an error of HTTP
    given = {f"{one.name}{'_total' * (one.type == 'counter')}" for one in registry.collect()}
    in_rules = set(re.findall(r"\bmarin_\w+", RULES.read_text()))
    on_dashboard = {name for query in queries() for name in re.findall(r"\bmarin_\w+", query)}
    assert in_rules <= given
    assert on_dashboard == given - {"marin_source_up", "marin_sensor_failing"}  # which are for alerts alone
    exporter.shutdown()


def host_of(url: str) -> str:
    return url.removeprefix("http://")


def series(prometheus: str, query: str) -> list[Any]:
    found = get(f"{prometheus}/api/v1/query?{urllib.parse.urlencode({'query': query})}")
    assert found["status"] == "success"
    return list(found["data"]["result"])


def queries() -> list[str]:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]
