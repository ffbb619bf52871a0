"""The records that a crawl writes of an exchange."""

from __future__ import annotations

import dataclasses
import gzip
import re

from marin_assets.stages.download.fetch.exchange import Answer
from marin_assets.stages.download.fetch.warc_records import records_of
from marin_assets.stages.download.links.addresses import Url, canonical_url


def answer(response: bytes) -> Answer:
    url = canonical_url("http://a.example/")
    assert isinstance(url, Url)
    return Answer(
        url=url,
        status=200,
        headers={},
        body=b"",
        request=b"GET / HTTP/1.1\r\n\r\n",
        response=response,
        date="2026-01-01T00:00:00Z",
        address="127.0.0.1",
    )


def ids_of(records: bytes) -> list[bytes]:
    return re.findall(rb"WARC-Record-ID: (\S+)", gzip.decompress(records))


def test_two_answers_of_an_address_within_a_second_have_ids_of_their_own() -> None:
    first = answer(b"HTTP/1.1 302 Found\r\nSet-Cookie: a=1\r\n\r\n")
    second = dataclasses.replace(first, response=b"HTTP/1.1 200 OK\r\n\r\nText")
    ids = [*ids_of(records_of(first)), *ids_of(records_of(second))]
    assert len(ids) == len(set(ids)) == 4
    assert ids_of(records_of(first)) == ids[:2], "ids are of what is recorded"
