"""Nothing private of a machine, a person or an account is on a page, wherever it is recorded."""

from __future__ import annotations

import json
import os
import re
from html import unescape
from pathlib import Path

import pytest
from png_pictures import picture_with_text
from recorded_steps import Recorded, WorkConfig, step, work

from marin_assets.experiment_page.from_graph import steps_of_graph
from marin_assets.experiment_page.page import page_of
from marin_assets.experiment_page.sections.attention import MOST
from marin_assets.step.graph import build_graph
from marin_assets.step.origin import Origin
from marin_assets.step.step import Step
from marin_resources.storage.output.attempts import log_path
from marin_resources.storage.output.store import Store

VARIABLE, DECLARED = "PLANTED_SERVICE_TOKEN", "PLANTED_PLAIN_WORDS"
PLANTED = {
    # a text as it is recorded -> the part that must not be on the page
    "loaded /home/marguerite/secret-project/rows.txt": "marguerite",
    "see /Users/octavia/notes": "octavia",
    "-I/opt/cluster-name/include": "cluster-name",
    "'/scratch/lab-dorset/x'": "lab-dorset",
    "file:///srv/vault-area/data": "vault-area",
    "C:\\Users\\bartleby\\x.txt": "bartleby",
    "~quentin/models/x": "quentin",
    "connected to 10.31.7.42:6379": "10.31.7.42",
    "listens at [fe80::1ff:fe23:4567:890a]": "fe80::1ff",
    "dashboard http://head-node-3:8265/jobs": "head-node-3",
    "by http://user:pw-of-proxy@proxy.example.org/x": "pw-of-proxy",
    "ray://gpu-farm-2:10001": "gpu-farm-2",
    "gpu-box-19.dept.internal is full": "gpu-box-19",
    "ip-172-31-9-8.ec2.internal": "ip-172-31-9-8",
    "gs://lab-private-bucket/raw/x": "lab-private-bucket",
    "s3://other-bucket-name/y": "other-bucket-name",
    "mail ada.lovelace@analytical-engine.org": "ada.lovelace",
    "Authorization: Bearer abcDEF123.456-xyz": "abcDEF123",
    "bearer: Bearer zyxWVU987654": "zyxWVU987654",
    "hf_QwErTyUiOpAsDfGhJkLzXcVb": "hf_QwErTy",
    "AKIAIOSFODNN7EXAMPLE": "AKIAIOSF",
    "aws wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY": "wJalrXUtnFEMI",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789": "ghp_abcdef",
    "xoxb-1234567890-abcdefghij": "xoxb-1234567890",
    "https://hooks.slack.com/services/T000/B000/verysecretpart": "verysecretpart",
    "WANDB_API_KEY=0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c": "0f1e2d3c4b5a",
    "password: correct-horse": "correct-horse",
    "https://x.s3.amazonaws.com/y?X-Amz-Signature=deadbeefcafe": "deadbeefcafe",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl": "eyJhbGciOi",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7\n-----END RSA PRIVATE KEY-----": "MIIEowIBAAK",
}
MORE = {
    "dsn is postgresql://dagster:pw-of-db@db-main:5432/runs": "pw-of-db",
    '{"auths": {"registry.example.org": {"auth": "dXNlcjpodW50ZXIy"}}}': "dXNlcjpodW50",
    "curl -u octavio:hunter22 https://example.org": "hunter22",
    "Set-Cookie: session=0a1b2c3d4e5f; Path=/": "0a1b2c3d4e5f",
    '"private_key_id": "9f8e7d6c5b4a39281706"': "9f8e7d6c5b4a",
    "AGE-SECRET-KEY-1QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L": "QQPZRY9X8G",
    "1234567890:AAF-abcdefghijklmnopqrstuvwxyz0123": "AAF-abcdef",
    "SG.ngeVfQFYQlKU0ufo8x5d1A.TwL2iGABf9DHoTf09kqeF8": "ngeVfQFYQl",
    "VAULT hvs.CAESIKx9q2mZpY7d1JwQ": "CAESIKx9q2",
    "SLURM_JOB_NODELIST=a100-[01-04]": "a100-[01",
    "open?path=%2Fhome%2Fthaddeus%2Frows.txt": "thaddeus",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4 wendeline@laptop": "wendeline",
    "\\\\wsl$\\Ubuntu\\home\\zacharias\\x": "zacharias",
}
"""Likewise, of other kinds."""
VALUES = ("value-of-a-service-token", "quiet river at dawn", "wilhelmina", "calculator-17", "lisbeth")
"""Those of the variables, and user, host and user of records; the last is of the lease."""


def config_of(texts: list[str]) -> WorkConfig:
    return WorkConfig(value={"texts": texts, "api_token": "a plain word", "user": "konstantin"}, note=" ".join(texts))


@pytest.fixture
def here(disk_prefix: str, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    monkeypatch.setenv(VARIABLE, VALUES[0])
    monkeypatch.setenv(DECLARED, VALUES[1])
    monkeypatch.setenv("USER", VALUES[4])
    return Recorded(Store(disk_prefix))


def test_thirty_planted_texts_and_all_names_are_nowhere_on_the_page(here: Recorded) -> None:
    assert (len(PLANTED), len(MORE)) == (30, 13)
    texts = [*PLANTED, *MORE, *VALUES, here.store.prefix, f"{here.store.prefix}/x", os.uname().nodename]
    everything = "\n".join(texts)
    origin = Origin(name="lab/web", homepage="http://intranet-wiki:8080/x", licence=f"as in {texts[0]}")
    done = Step(name="done", fn=work, config=config_of(texts), description=everything, env=(DECLARED,), origin=origin)
    failed = [step(f"failed-{number}", 2, done) for number in range(len(texts))]
    graph = build_graph(failed)
    facts = {"user": VALUES[2], "host": f"{VALUES[3]}.lab.org", "description": everything, "job": None}
    result = {"note": everything, "url": "https://hooks.slack.com/services/T000/B000/verysecretpart", "best": texts[0]}
    here.publish(graph[done], graph, facts, {**result, "plots": ["plots/x.png"], f"n {texts[0]}": 3})
    folder = Path(here.store.locate(graph[done].output))
    record = json.loads(folder.joinpath(".executor_info").read_text())
    folder.joinpath(".executor_info").write_text(json.dumps({**record, "host": facts["host"]}))
    folder.joinpath("plots").mkdir()
    folder.joinpath("plots/x.png").write_bytes(picture_with_text(everything))
    folder.joinpath("generated.jsonl").write_text("".join(f'{{"prompt": "{VALUES[2]}", "text": "{VALUES[1]}"}}\n'))
    here.make(step("failed-0", everything), finished_at="2026-01-01T00:00:00+00:00")  # an earlier version
    for failing, text in zip(failed, texts, strict=True):
        claim = here.claim(graph[failing])
        Path(log_path(claim.path, claim.attempt)).write_text(f"{everything}\n{text}\n")
        assert here.store.fail(
            claim, {**here.facts_of(graph[failing], graph), **facts}, f"x\nValueError: {text}", everything
        )
    for start in range(0, len(failed), MOST):
        part = [graph[done], *(graph[failing] for failing in failed[start : start + MOST])]
        require_clean(here, page_of(steps_of_graph("mine", graph, part, here.store)), len(part) - 1)


def require_clean(here: Recorded, html: str, failed: int) -> None:
    assert f"1 complete, {failed} failed" in html
    assert html.count("ValueError: ") >= failed
    private = [
        *PLANTED.values(),
        *MORE.values(),
        *VALUES,
        here.store.prefix,
        "konstantin",
        "a plain word",
        "intranet-wiki",
        "/home/",
    ]
    private += ["calculator-17.lab", "/tmp/"]
    for form in (html, unescape(html)):
        assert re.search(rf"(?<![A-Za-z0-9]){re.escape(os.uname().nodename)}(?![A-Za-z0-9])", form) is None
        assert [secret for secret in private if secret.lower() in form.lower()] == []
