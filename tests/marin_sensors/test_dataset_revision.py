"""The sensor on somebody else's dataset, against servers on loopback."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest
from hub import Hub, hub_on_loopback
from webhooks import Webhook

from marin_sensors.dataset_revision import dataset_revision


@dg.asset(key=["c4", "raw"], partitions_def=dg.DynamicPartitionsDefinition(name="c4_commits"))
def raw() -> None: ...


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with hub_on_loopback() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.delenv("HF_TOKEN", raising=False)
        yield hub


class Ticking:
    """A sensor that is ticked by hand, its cursor kept."""

    def __init__(self, source: str, **options: Any) -> None:
        self.cursor: str | None = None
        self.sensor = dataset_revision("c4", source, **options)

    def __call__(self) -> list[dg.RunRequest]:
        result = self.look()
        if isinstance(result, dg.SkipReason):
            self.said = str(result.skip_message)
            return []
        self.cursor = result.cursor
        self.said = str(result.skip_reason.skip_message) if result.skip_reason else ""
        self.added = [key for added in result.dynamic_partitions_requests or () for key in added.partition_keys]
        return list(result.run_requests or ())

    def look(self) -> Any:
        with dg.DagsterInstance.ephemeral() as instance:
            definitions = dg.Definitions(assets=[raw])
            return self.sensor(dg.build_sensor_context(instance=instance, cursor=self.cursor, definitions=definitions))


def test_a_new_commit_is_announced_once(hub: Hub, webhook: Webhook) -> None:
    tick = Ticking("hf://datasets/allenai/c4")
    assert tick() == []
    assert tick.said.startswith("hf://datasets/allenai/c4 is at commit 5e1b3c000000, seen first at 20")
    assert webhook.texts == [], "the first one is no news"
    hub.commits["main"] = "f" * 40
    webhook.status = 500
    tick()
    assert "answered 500" in tick.said
    webhook.status = 200
    for _ in range(3):
        assert tick() == []
    assert webhook.texts == [
        "*A dataset has changed*\nhf://datasets/allenai/c4 has a new revision: commit ffffffffffff."
    ]


def test_a_commit_becomes_a_partition_and_one_run(hub: Hub) -> None:
    tick = Ticking("hf://datasets/allenai/c4@dev/v2", partitions="c4_commits", assets=["c4/raw"])
    lost, again = tick.look(), tick.look()
    assert [request.run_key for request in lost.run_requests] == ["c4: " + "d" * 40]
    assert lost.run_requests[0].run_key == again.run_requests[0].run_key, "which Dagster does not launch twice"
    [request] = tick()
    assert (request.partition_key, tick.added) == ("d" * 40, ["d" * 40])
    assert request.asset_selection == [dg.AssetKey(["c4", "raw"])]
    assert tick() == []
    hub.commits["dev/v2"] = "e" * 40
    assert [request.partition_key for request in tick()] == ["e" * 40]


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        ({"ETag": '"abc-12"'}, "abc-12"),
        ({"ETag": 'W/"abc"'}, "abc"),
        ({"ETag": '"a/b?"'}, "16 hex digits"),
        ({"Last-Modified": "Mon, 23 Nov 2026 10:00:00 GMT", "Content-Length": "12"}, "16 hex digits"),
    ],
)
def test_the_revision_of_a_url_is_its_etag(hub: Hub, headers: dict[str, str], key: str) -> None:
    hub.headers = headers
    tick = Ticking(f"{hub.url}/dump.gz", partitions="c4_commits", assets=["c4/raw"])
    [request] = tick()
    found = str(request.partition_key)
    assert found == key or (key == "16 hex digits" and re.fullmatch("[0-9a-f]{16}", found)), found
    assert tick() == []
    hub.headers = {"ETag": '"other"'}
    assert [request.partition_key for request in tick()] == ["other"]


def test_what_cannot_be_asked_is_a_skipped_tick_and_the_cursor_stays(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    tick = Ticking("hf://datasets/allenai/c4", partitions="c4_commits", assets=["c4/raw"])
    assert len(tick()) == 1
    cursor = tick.cursor
    hub.status = 503
    assert tick() == []
    assert tick.said == "The server answered 503 for 'hf://datasets/allenai/c4'. The next tick asks again."
    gated = Ticking("hf://datasets/allenai/secret")
    gated()
    assert gated.said.startswith("The server answered 404 for 'hf://datasets/allenai/secret'. Set HF_TOKEN if")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    assert tick() == []
    assert "did not answer ([Errno 111] Connection refused). The next tick asks again." in tick.said
    assert tick.cursor == cursor
    hub.status, hub.headers = 200, {}
    bare = Ticking(f"{hub.url}/dump.gz")
    bare()
    assert "sends neither an ETag nor the time of the last change" in bare.said
    bare.cursor = "nonsense"
    bare()
    assert "The cursor 'nonsense' is none of this sensor. Reset it" in bare.said


def test_the_token_goes_to_the_hub_alone(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    Ticking("hf://datasets/allenai/c4")()
    monkeypatch.setenv("HF_TOKEN", "s3cr3t")
    Ticking("hf://datasets/allenai/c4")()
    Ticking(f"{hub.url}/dump.gz")()
    assert hub.tokens == [None, "Bearer s3cr3t"]


def test_the_token_does_not_follow_a_redirect_to_another_host(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "s3cr3t")
    with hub_on_loopback() as other:
        hub.moved_to = other.url
        tick = Ticking("hf://datasets/allenai/c4")
        assert tick() == []
        assert "is at commit 5e1b3c" in tick.said
        assert (hub.tokens, other.tokens) == (["Bearer s3cr3t"], [None])


@pytest.mark.parametrize(
    "answer",
    [
        b'{"sha": null}',
        b'{"sha": ""}',
        b'{"sha": 12}',
        b'{"sha": ["a"]}',
        b'{"sha": "../x"}',
        b"[]",
        b"null",
        b"{",
        b"",
    ],
)
def test_an_answer_without_a_commit_is_no_key(hub: Hub, answer: bytes) -> None:
    tick = Ticking("hf://datasets/allenai/c4", partitions="c4_commits", assets=["c4/raw"])
    hub.body = answer
    assert tick() == []
    assert tick.said.startswith("The answer for 'hf://datasets/allenai/c4' has no commit: b'")
    hub.body = None
    assert [request.partition_key for request in tick()] == ["5e1b3c" + "0" * 34]


def test_an_etag_that_differs_from_a_key_in_case_alone_is_a_sentence(hub: Hub) -> None:
    hub.headers = {"ETag": '"AbC"'}
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("c4_commits", ["abc"])
        sensor = dataset_revision("c4", f"{hub.url}/dump.gz", partitions="c4_commits", assets=["c4/raw"])
        found: Any = sensor(dg.build_sensor_context(instance=instance, definitions=dg.Definitions(assets=[raw])))
    assert "'AbC' is new in the set 'c4_commits', and 'abc' is one folder with it" in found.skip_message


def test_a_sensor_that_spends_nothing_runs_and_one_that_does_waits_to_be_switched_on() -> None:
    announces = dataset_revision("c4", "hf://datasets/allenai/c4")
    requests = dataset_revision("c4", "hf://datasets/allenai/c4", partitions="c4_commits", assets=["c4/raw"])
    assert announces.default_status is dg.DefaultSensorStatus.RUNNING
    assert requests.default_status is dg.DefaultSensorStatus.STOPPED


@pytest.mark.parametrize(
    ("source", "options", "sentence"),
    [
        ("allenai/c4", {}, "The dataset is 'allenai/c4', expected 'hf://datasets/<name>'"),
        ("hf://allenai/c4", {}, "expected 'hf://datasets/<name>'"),
        ("https://", {}, "or 'https://…'"),
        ("hf://datasets/c4", {"partitions": "c4"}, "assets=[], expected both, or neither"),
        ("hf://datasets/c4", {"assets": ["c4/raw"]}, "partitions='' and"),
    ],
)
def test_a_sensor_that_cannot_be_is_refused(source: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match="expected") as refused:
        dataset_revision("c4", source, **options)
    assert sentence in str(refused.value)


def test_assets_that_do_not_fit_are_a_sentence(hub: Hub) -> None:
    tick = Ticking("hf://datasets/allenai/c4", partitions="other", assets=["c4/raw"])
    tick()
    assert "has other partitions. Give its step partitions=dynamic('other')" in tick.said
