"""Weights reach a sampler as they were published, by either way, or not at all."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from typing import Any

import pytest
from rl_training import rl_config

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.rl.weights.fetch import Fetcher, Source
from marin_assets.stages.train.rl.weights.publication import Publication, opened_publication, weights_path

HOST = "127.0.0.1"


def content_of(seed: int) -> bytearray:
    import equinox as eqx
    import jax

    from marin_assets.stages.train.rl.weights.packing import packed

    return packed(eqx.nn.MLP(in_size=3, out_size=5, width_size=7, depth=2, key=jax.random.PRNGKey(seed)))


def publication_of(output: Path, weights_by: str) -> Any:
    return opened_publication(rl_config("model", output, samplers=2, weights_by=weights_by), HOST)


def published(publication: Publication, seed: int, weights_step: int) -> Source:
    content = content_of(seed)
    publication.publish(lambda: content, weights_step)
    return publication.source(weights_step)


def test_both_ways_and_the_file_have_the_same_bytes(tmp_path: Path) -> None:
    from safetensors.numpy import load

    for weights_by in ("file", "flight"):
        output = tmp_path / weights_by
        with publication_of(output, weights_by) as publication:
            source = published(publication, 0, 3)
            assert bool(source.url) == (weights_by == "flight")
            content = Fetcher().fetch(source)
            assert content == content_of(0)
            publication.fetched(4.0, len(content))
            metrics = publication.sync_metrics(10.0)
            assert metrics["rl/sync_bytes"] == 2 * len(content)
            assert 0.2 < metrics["rl/sync_share"] < 0.5  # each of two samplers took 4 of 10 s, and one fetched
            assert publication.sync_metrics(1.0)["rl/sync_bytes"] == 0
        stored = Path(weights_path(str(output), 3)).read_bytes()
        assert stored == content
        assert sum(array.size for array in load(stored).values()) == 3 * 7 + 7 + 7 * 7 + 7 + 7 * 5 + 5


@pytest.mark.parametrize(
    ("weights_by", "spent", "is_said"), [("file", 0.6, True), ("file", 0.001, False), ("flight", 0.6, False)]
)
def test_flight_is_proposed_where_files_take_much_of_a_step(
    weights_by: str, spent: float, is_said: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with publication_of(tmp_path, weights_by) as publication:
        for _ in range(30):
            publication.fetched(2 * spent, 100)
            publication.sync_metrics(10.0)
    assert caplog.text.count("weights take 6 % of a step: weights_by='flight' may be faster") == is_said


def test_large_weights_come_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from marin_assets.stages.train.rl.weights import flight

    monkeypatch.setattr(flight, "CHUNK_BYTES", 100)
    with publication_of(tmp_path, "flight") as publication:
        assert Fetcher().fetch(published(publication, 0, 3)) == content_of(0)


def test_a_stranger_gets_nothing(tmp_path: Path) -> None:
    import pyarrow.flight as flight

    from marin_assets.stages.train.rl.weights.flight import WeightsClient

    with publication_of(tmp_path, "flight") as publication:
        source = published(publication, 0, 3)
        client = flight.FlightClient(source.url)
        ticket = flight.Ticket(b"3")
        for call in (
            lambda: WeightsClient(source.url, "a guess").get(3, source.size),
            lambda: client.do_get(ticket).read_all(),
            lambda: list(client.list_flights()),
            lambda: list(client.do_action(flight.Action("shutdown", b""))),
        ):
            with pytest.raises(flight.FlightUnauthenticatedError, match="samplers of its training alone"):
                call()
        assert Fetcher().fetch(source) == content_of(0)


DAMAGE = {
    "torn": (lambda content: content[:-40], "are damaged"),
    "changed": (lambda content: content[:-3] + bytes([content[-3] ^ 1]) + content[-2:], "are damaged"),
    "header alone": (lambda content: content[:20], "are damaged"),
    "empty": (lambda content: b"", "are damaged"),
    "others": (lambda content: bytes(content_of(1)), "are others than the training has published"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_file_that_is_not_what_was_published_is_never_used(damage: str, tmp_path: Path) -> None:
    change, says = DAMAGE[damage]
    with publication_of(tmp_path, "file") as publication:
        source = published(publication, 0, 3)
        path = Path(source.path)
        path.write_bytes(change(path.read_bytes()))
        with pytest.raises(TrainError, match=says):
            Fetcher().fetch(source)
        path.unlink()
        with pytest.raises(TrainError, match="are missing"):
            Fetcher().fetch(source)


def test_what_a_server_has_not_or_has_otherwise_is_a_sentence(tmp_path: Path) -> None:
    fetcher = Fetcher()
    with publication_of(tmp_path, "flight") as publication:
        source, other = published(publication, 0, 3), published(publication, 1, 4)
        with pytest.raises(TrainError, match="are others than the training has published"):
            fetcher.fetch(dataclasses.replace(source, digest=other.digest))
        with pytest.raises(TrainError, match="are damaged"):
            fetcher.fetch(dataclasses.replace(source, size=source.size + 8))
        publication.remove_before(4)
        with pytest.raises(TrainError, match="no weights after 3 updates are served any more"):
            fetcher.fetch(source)
        assert not Path(source.path).exists()
        assert fetcher.fetch(other) == content_of(1)
    with pytest.raises(TrainError, match=r"cannot be had from grpc://.* or set weights_by='file'"):
        fetcher.fetch(other)
    assert "\n" not in other.path


def test_an_attempt_that_resumes_compares_and_samples_with_what_is_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with publication_of(tmp_path, "flight") as publication:
        first = published(publication, 0, 3)
    with publication_of(tmp_path, "flight") as publication:
        source = publication.source(3)
        assert (source.digest, source.url) == (first.digest, "")  # the file alone has them
        assert Fetcher().fetch(source) == content_of(0)
        published(publication, 0, 3)
        assert caplog.messages == []
        with caplog.at_level(logging.WARNING):
            published(publication, 1, 3)
        assert "the weights after 3 updates are others than an earlier attempt had" in caplog.text
        with pytest.raises(TrainError, match=r"0000009.safetensors', which are missing"):
            publication.source(9)
    Path(first.path).write_bytes(b"no weights")
    with publication_of(tmp_path, "file") as publication, pytest.raises(TrainError, match="are damaged"):
        publication.source(3)
