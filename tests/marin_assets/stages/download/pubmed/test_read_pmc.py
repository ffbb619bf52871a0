"""Articles of PMC's archives become pages; every other member is counted by its reason."""

from __future__ import annotations

import gzip
import logging
import random

import pytest
from crawl_server import CrawlServer
from crawls import Read, reasons
from pubmed_files import Write, archive_of, article, digest_of, real_files

from marin_assets.stages.download.warc.record import CrawlError
from marin_resources.ray_tpu.shards.map_shards import ShardError
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join

NAME = "oa_comm_xml.PMC000xxxxxx.baseline.2024-06-18.tar.gz"
BY = "https://creativecommons.org/licenses/by/4.0/"


def test_a_page_has_its_jats_and_what_the_article_states_of_it(write: Write, articles: Read) -> None:
    meta = (
        "<permissions><copyright-statement>© 2011 Owls</copyright-statement>"
        f'<license license-type="open-access" xlink:href="{BY}"><license-p>Open <bold>access</bold>.</license-p>'
        "</license></permissions>"
    )
    head = '<!DOCTYPE article PUBLIC "-//NLM//DTD JATS v1.0//EN" "JATS-archivearticle1.dtd">\n'
    text = head + article(22, title="On <italic>B.</italic>&nbsp;bubo", meta=meta).replace(
        "<front>", "<!-- x --><?y z?><front>"
    )
    counts, (page,) = articles(write({NAME: archive_of({"PMC000xxxxxx/PMC22.nxml": text})}))
    assert page.id == "PMC22"
    assert page.source == "oa_comm"
    assert page.text.startswith("<article ")
    assert "<italic>B.</italic>\xa0bubo" in page.text
    assert "<!--" not in page.text
    assert "<?" not in page.text
    assert page.metadata == {
        "url": "https://pmc.ncbi.nlm.nih.gov/articles/PMC22/",
        "pmcid": "PMC22",
        "title": "On B. bubo",
        "journal": "Owls",
        "year": 2011,
        "doi": "10.1/x",
        "type": "research-article",
        "language": "",
        "copyright": "© 2011 Owls",
        "license": BY,
        "license_text": "Open access.",
        "subset": "oa_comm",
        "file": NAME,
    }
    assert counts["articles"] == 1


@pytest.mark.parametrize(
    ("license_", "expected"),
    [
        ('<license license-type="cc-by"/>', "cc-by"),
        (f'<license><license-p>See <ext-link xlink:href="{BY}">here</ext-link></license-p></license>', BY),
        (
            f'<license><ali:license_ref xmlns:ali="http://www.niso.org/schemas/ali/1.0/">{BY}</ali:license_ref></license>',
            BY,
        ),
        ("<license><license-p>Ask the owls.</license-p></license>", "Ask the owls."),
        ("", None),
    ],
    ids=["type", "link", "reference", "text", "none"],
)
def test_the_licence_is_the_address_or_else_what_is_stated(
    write: Write, articles: Read, license_: str, expected: str | None
) -> None:
    text = article(meta=f"<permissions>{license_}</permissions>")
    _, (page,) = articles(write({"a.tar.gz": archive_of({"PMC7.xml": text})}))
    assert page.metadata.get("license") == expected
    assert page.source == "pmc"
    assert articles(write({}), source="mine")[1][0].source == "mine"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("<article><front>", "bad_xml"),
        ("", "bad_xml"),
        (b"\xff\xfe\x00", "bad_xml"),
        (article(body="<p>&owl;</p>"), "bad_xml"),
        ('<!DOCTYPE article [<!ENTITY a "x">]>' + article(), "entities"),
        ("<html/>", "bad_article"),
        ("<article><body/></article>", "bad_article"),
        (article("x"), "bad_article"),
        (article(body="<sec>" * 110 + "</sec>" * 110), "too_deep"),
        (article(body="<p>" + "x" * 100_000 + "</p>"), "too_large"),
    ],
    ids=["cut", "empty", "binary", "name", "entity", "html", "no-front", "no-id", "deep", "large"],
)
def test_each_other_member_has_one_reason_and_costs_no_other(
    write: Write, articles: Read, content: str | bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    members = {"PMC1.nxml": article(1), "other.nxml": content, "README.txt": "x", "PMC2.xml": article(2)}
    with caplog.at_level(logging.WARNING):
        counts, pages = articles(write({NAME: archive_of(members)}), max_damaged_fraction=0.5, max_article_bytes=90_000)
    assert [page.id for page in pages] == ["PMC1", "PMC2"]
    assert reasons(counts) == {reason: 1}
    assert counts["ignored_members"] == 1
    assert (f"'{NAME}' 'other.nxml': an article is lost ({reason}:" in caplog.text) == (reason != "too_large")


def test_an_article_without_an_id_has_that_of_its_file(write: Write, articles: Read) -> None:
    text = article().replace('pub-id-type="pmc"', 'pub-id-type="other"')
    _, (page,) = articles(write({NAME: archive_of({"PMC000xxxxxx/PMC77.1.xml": text})}))
    assert page.id == "PMC77"


def test_the_last_archive_has_the_valid_article(write: Write, articles: Read) -> None:
    names = ["oa_comm_xml.PMC009xxxxxx.baseline.2024-06-18.tar.gz", "oa_comm_xml.incr.2024-06-19.tar.gz"]
    old = archive_of({"PMC1.xml": article(1, title="old"), "PMC2.xml": article(2)})
    new = archive_of({"PMC1.xml": article(1, title="newer"), "again/PMC1.xml": article(1, title="newest")})
    counts, pages = articles(write({names[0]: old, names[1]: new}))
    assert [(page.id, page.metadata["title"]) for page in pages] == [("PMC2", "On owls"), ("PMC1", "newest")]
    assert reasons(counts) == {"superseded": 2}


def test_an_archive_that_is_cut_anywhere_is_an_error_unless_it_is_allowed(write: Write, articles: Read) -> None:
    draw = random.Random(4)
    body = [f"<p>{draw.randbytes(20_000).hex()}</p>" for _ in range(12)]
    whole = archive_of({f"PMC{n}.xml": article(n, body=text) for n, text in enumerate(body, 1)})
    cuts = [whole[:-1], whole[:-8], *(whole[: draw.randrange(len(whole) * 2 // 3, len(whole))] for _ in range(4))]
    cuts.append(gzip.compress(gzip.decompress(whole)[:300_000]))
    for content in cuts:
        folder = write({NAME: content})
        with pytest.raises(ShardError, match=rf"The file '{NAME}' is damaged or cut after \d+ articles \("):
            articles(folder)
        counts, pages = articles(folder, allow_cut_files=True, max_damaged_fraction=1.0)
        assert counts["cut_files"] == 1
        assert 1 <= len(pages) <= 12


@pytest.mark.parametrize(
    "content", [b"", b"<html/>", gzip.compress(b"x" * 9999, mtime=0)], ids=["empty", "html", "gzip"]
)
def test_a_file_that_is_no_archive_is_refused(write: Write, articles: Read, content: bytes) -> None:
    with pytest.raises(ShardError, match=r"damaged or cut after 0 articles \(it "):
        articles(write({NAME: content}))


def test_archives_on_a_server_and_in_a_bucket_are_read(
    any_prefix: str, write: Write, articles: Read, server: CrawlServer
) -> None:
    name = f"oa_bulk/oa_noncomm/xml/{NAME.replace('comm', 'noncomm')}"
    content = archive_of({f"PMC{n}.xml": article(n) for n in range(1, 40)})
    whole = articles(write({name: content}))[1]
    assert {page.source for page in whole} == {"oa_noncomm"}
    server.files = {name: content, f"{name}.md5": digest_of("x", content), "all.paths": name.encode()}
    server.fault(name, "busy", "cut")
    counts, pages = articles(server.url + "all.paths", base_url=server.url)
    assert pages == whole
    assert counts["verified_files"] == 1
    write_bytes(join(any_prefix, name), content)
    assert articles(any_prefix)[1] == whole


def test_no_article_is_an_error(write: Write, articles: Read) -> None:
    with pytest.raises(CrawlError, match=r"None of the 0 articles of .* \(none\)\. Expected articles of JATS"):
        articles(write({NAME: archive_of({"README.txt": "x"})}))


@pytest.mark.long
def test_the_real_articles_are_read(write: Write, articles: Read) -> None:
    members = {f"PMC000xxxxxx/{path.name}": path.read_bytes() for path in sorted(real_files().glob("*.nxml"))}
    counts, pages = articles(write({NAME: archive_of(members)}))
    assert counts["documents"] == 8
    assert {page.id for page in pages} == {
        "PMC3166277", "PMC2329613", "PMC2994229", "PMC2599765", "PMC3574550", "PMC3585041", "PMC1790863", "PMC3460867",
    }  # fmt: skip
    assert sum("license" in page.metadata for page in pages) == 6
    assert all(page.metadata["doi"] and page.metadata["journal"] and page.metadata["year"] for page in pages)
