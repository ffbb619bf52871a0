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
from marin_assets.experiment_page.scrub.png import without_texts
from marin_assets.experiment_page.scrub.private_values import private_values
from marin_assets.experiment_page.scrub.scrubber import Scrubber
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
    assert len(PLANTED) == 30
    texts = [*PLANTED, *VALUES, here.store.prefix, f"{here.store.prefix}/x", os.uname().nodename]
    everything = "\n".join(texts)
    origin = Origin(name="lab/web", homepage="http://intranet-wiki:8080/x", licence=f"as in {texts[0]}")
    done = Step(name="done", fn=work, config=config_of(texts), description=everything, env=(DECLARED,), origin=origin)
    failed = step("failed", 2, done)
    graph = build_graph([failed])
    facts = {"user": VALUES[2], "host": f"{VALUES[3]}.lab.org", "description": everything, "job": None}
    result = {"note": everything, "url": "https://hooks.slack.com/services/T000/B000/verysecretpart", "best": texts[0]}
    here.publish(graph[done], graph, facts, {**result, "plots": ["plots/x.png"], f"n {texts[0]}": 3})
    folder = Path(here.store.locate(graph[done].output))
    record = json.loads(folder.joinpath(".executor_info").read_text())
    folder.joinpath(".executor_info").write_text(json.dumps({**record, "host": facts["host"]}))
    folder.joinpath("plots").mkdir()
    folder.joinpath("plots/x.png").write_bytes(picture_with_text(everything))
    folder.joinpath("generated.jsonl").write_text("".join(f'{{"prompt": "{VALUES[2]}", "text": "{VALUES[1]}"}}\n'))
    here.make(step("failed", everything), finished_at="2026-01-01T00:00:00+00:00")  # an earlier version
    for text in texts:
        claim = here.claim(graph[failed])
        Path(log_path(claim.path, claim.attempt)).write_text(f"{everything}\n{text}\n")
        assert here.store.fail(
            claim, {**here.facts_of(graph[failed], graph), **facts}, f"x\nValueError: {text}", everything
        )
        require_clean(here, page_of(steps_of_graph("mine", graph, list(graph), here.store)))


def require_clean(here: Recorded, html: str) -> None:
    assert "1 complete, 1 failed" in html
    assert "ValueError: " in html
    private = [*PLANTED.values(), *VALUES, here.store.prefix, "konstantin", "a plain word", "intranet-wiki", "/home/"]
    private += ["calculator-17.lab", "/tmp/"]
    for form in (html, unescape(html)):
        assert re.search(rf"(?<![A-Za-z0-9]){re.escape(os.uname().nodename)}(?![A-Za-z0-9])", form) is None
        assert [secret for secret in private if secret.lower() in form.lower()] == []


@pytest.mark.parametrize(
    "text",
    [
        "optimizer.lr: 0.003 -> 0.001",
        "'raw/root'/train: 1 -> 2",
        "4.2 steps/s, loss 2.31",
        "2026-11-28 06:20:14 UTC",
        "max_tokens: 100, eos_token: <eos>, tokenizer: gpt2",
        "marin_assets.stages.report.report:write_report",
        "commit 0123456789abcdef0123456789abcdef01234567",
        "https://huggingface.co/lab/model",
        "home/page-1[2026-01]",
        "1.13.27",
        "a/b/root/x",
    ],
)
def test_what_is_not_private_stays(text: str) -> None:
    assert Scrubber(private_values(["/data/prefix"])).text(text) == text


def test_a_path_keeps_what_is_below_the_prefix_and_the_name_of_a_file() -> None:
    scrub = Scrubber(private_values(["/data/prefix", "gs://bucket/marin"]))
    assert scrub.text("/data/prefix/toy/a-123456/x") == "<prefix>/toy/a-123456/x"
    assert scrub.text("gs://bucket/marin/toy") == "<prefix>/toy"
    assert scrub.text('File "/home/me/code/stage.py", line 3') == 'File "<path>/stage.py", line 3'
    assert scrub.text("/data/prefixes/x") == "<path>"
    assert scrub.text('{"path": "/mnt/our files/rows of ada"}') == '{"path": "<path>"}'
    assert scrub.text("ssh -i key ada@gpu7 ls") == "ssh -i key <address> ls"
    assert scrub.text("/usr/lib/python3.11/site-packages/jax/core.py") == "jax/core.py"


def test_a_common_name_of_an_account_does_not_blank_the_page_and_a_persons_name_is_whole_words() -> None:
    scrub = Scrubber(private_values([], users=["root", "data", "percy"], hosts=["localhost", "worker-3.lab.edu"]))
    assert scrub.text("root data percy's percy_run on worker-3 persevere") == (
        "root data <user>'s <user>_run on <host> persevere"
    )


def test_markup_is_no_text_and_texts_do_not_run_together() -> None:
    scrub = Scrubber(private_values([], users=["card"], environ={"MY_SECRET": "password12"}))
    picture = '<img src="data:image/png;base64,/home/x+card">'
    html = f'<p class="card" title="card">card &lt;b&gt; pass</p><p>word12</p>{picture}'
    assert scrub.page(html) == (
        f'<p class="card" title="&lt;user&gt;">&lt;user&gt; &lt;b&gt; pass</p><p>word12</p>{picture}'
    )


def test_a_long_text_without_spaces_takes_little_time() -> None:
    scrub = Scrubber(private_values(["/data/prefix"]))
    for part in ("a", "a/", "a.", "a-", "1.", "a:", "/", "@", "token=", "-----BEGIN ", "A+"):
        scrub.text(part * (60_000 // len(part)))  # quadratic time would be minutes


def test_a_picture_keeps_its_pixels_and_a_damaged_one_is_refused() -> None:
    picture = picture_with_text("by percy")
    clean = without_texts(picture)
    assert (b"percy" in picture, b"percy" in clean) == (True, False)
    assert clean == picture_with_text("")
    for damaged in (b"GIF89a", picture[:-5], picture[:20]):
        with pytest.raises(ValueError, match="it "):
            without_texts(damaged)
