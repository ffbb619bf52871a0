"""Citations of PubMed become documents; every other one is counted by its reason."""

from __future__ import annotations

import gzip
import json
import logging
import random
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pubmed_files
import pytest
from crawl_server import CrawlServer
from crawls import Read, reasons
from pubmed_files import ABSTRACT, HEAD, Write, citation, deleted, digest_of, pubmed_of, real_files

from marin_assets.stages.download.pubmed.latest import MAX_NUMBER
from marin_assets.stages.download.warc.record import CrawlError
from marin_resources.ray_tpu.shards.map_shards import ShardError
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join

NAME = "pubmed25n0001.xml.gz"


def test_a_document_has_title_and_abstract_and_what_is_stated_of_it(write: Write, citations: Read) -> None:
    abstract = (
        '<AbstractText Label="BACKGROUND" NlmCategory="BACKGROUND">Owls drink H<sub>2</sub>O.</AbstractText>'
        '<AbstractText Label="METHODS">We counted 10<sup>-3</sup> of <i>Bubo bubo</i>, 1<sup>st</sup>.</AbstractText>'
        '<AbstractText Label="METHODS">Twice, with <b>care</b>.</AbstractText>'
        "<AbstractText>They do.</AbstractText><CopyrightInformation>© 2000 Owls Ltd.</CopyrightInformation>"
    )
    mesh = (
        "<MeshHeadingList><MeshHeading><DescriptorName>Strigiformes</DescriptorName><QualifierName>x</QualifierName>"
        "</MeshHeading></MeshHeadingList>"
    )
    ids = (
        '<ArticleIdList><ArticleId IdType="doi">10.1/owl</ArticleId><ArticleId IdType="pmc">PMC5</ArticleId>'
        '</ArticleIdList><ReferenceList><Reference><ArticleIdList><ArticleId IdType="doi">10.1/other</ArticleId>'
        "</ArticleIdList></Reference></ReferenceList>"
    )
    types = "<PublicationTypeList><PublicationType>Review</PublicationType></PublicationTypeList>"
    text = citation(
        5, version=2, title="On <i>B. bubo</i> owls.", abstract=abstract, article=types, rest=mesh, data=ids
    )
    counts, (document,) = citations(write({NAME: pubmed_of(text)}))
    assert document.id == "PMID5"
    assert document.source == "pubmed"
    assert document.text == (
        "# On B. bubo owls.\n\n## BACKGROUND\n\nOwls drink H_2O.\n\n## METHODS\n\nWe counted 10^-3 of Bubo bubo, "
        "1st.\n\nTwice, with care.\n\nThey do."
    )
    assert document.metadata == {
        "url": "https://pubmed.ncbi.nlm.nih.gov/5/",
        "journal": "Journal of owls",
        "year": 2000,
        "languages": ["eng"],
        "types": ["Review"],
        "mesh": ["Strigiformes"],
        "doi": "10.1/owl",
        "pmcid": "PMC5",
        "license": "© 2000 Owls Ltd.",
        "pmid": "5",
        "version": 2,
        "title": "On B. bubo owls.",
    }
    assert (counts["files"], counts["verified_files"], counts["cut_files"]) == (1, 0, 0)


def test_labels_are_left_out_by_field_and_formulas_are_readable(write: Write, citations: Read) -> None:
    formula = (
        '<mml:math xmlns:mml="http://www.w3.org/1998/Math/MathML"><mml:msup><mml:mi>x</mml:mi><mml:mn>2</mml:mn>'
        "</mml:msup></mml:math>"
    )
    abstract = f'<AbstractText Label="AIM">We find {formula} and CO<sub>2 </sub>and &amp;.</AbstractText>'
    _, (document,) = citations(write({NAME: pubmed_of(citation(5, abstract=abstract))}), labels=False)
    assert document.text == "# On owls.\n\nWe find x^2 and CO_2 and &."


def test_the_last_file_has_the_valid_citation_wherever_it_is(write: Write, citations: Read) -> None:
    folder = write(
        {
            "updatefiles/pubmed25n10000.xml.gz": pubmed_of(citation(1, title="newest"), deleted(4), citation(6)),
            "updatefiles/pubmed25n9999.xml.gz": pubmed_of(
                citation(1, title="newer"), citation(3, abstract=""), deleted(6)
            ),
            "baseline/pubmed25n0001.xml.gz": pubmed_of(
                *(citation(n, title="old") for n in (1, 2, 3, 4)),
                citation(5, version=2, title="second"),
                citation(5, version=1, title="first"),
                citation(6),
                citation(7, title="a"),
                citation(7, title="b"),
                citation(8),
                deleted(8),
            ),
        }
    )
    for shard_bytes in (1, 10**9):
        counts, documents = citations(folder, shard_bytes=shard_bytes)
        assert [(document.id, document.metadata["title"]) for document in documents] == [
            ("PMID2", "old"), ("PMID5", "second"), ("PMID7", "b"), ("PMID1", "newest"), ("PMID6", "On owls."),
        ]  # fmt: skip
        assert reasons(counts) == {"superseded": 6, "deleted": 2, "no_abstract": 1}
        assert counts["deletions"] == 3


def test_a_random_history_is_resolved_as_by_a_dictionary(write: Write, citations: Read) -> None:
    draw = random.Random(3)
    files, state = {}, dict[int, str]()
    for n in range(12):
        parts = []
        for _ in range(40):
            pmid, text = draw.randrange(1, 60), f"{n} {draw.random()}"
            if draw.random() < 0.2:
                continue
            abstract = f"<AbstractText>{text}</AbstractText>" if draw.random() < 0.8 else ""
            parts.append(citation(pmid, title="", abstract=abstract))
            state[pmid] = text if abstract else ""
        gone = [draw.randrange(1, 60) for _ in range(5)]
        parts.append(deleted(*gone))
        for pmid in gone:
            state.pop(pmid, None)
        files[f"pubmed25n{n:04}.xml.gz"] = pubmed_of(*parts)
    _, documents = citations(write(files))
    expected = {f"PMID{pmid}": text for pmid, text in state.items() if text}
    assert {document.id: document.text for document in documents} == expected
    assert len(documents) == len(expected)


@pytest.mark.parametrize(
    ("element", "reason"),
    [
        (citation(5, abstract=""), "no_abstract"),
        (citation(5, abstract="<AbstractText> \n</AbstractText>"), "no_abstract"),
        (citation("x"), "bad_citation"),
        (citation(0), "bad_citation"),
        (citation(MAX_NUMBER + 1), "bad_citation"),
        ("<PubmedArticle/>", "bad_citation"),
        ("<PubmedArticle><MedlineCitation><PMID>5</PMID></MedlineCitation></PubmedArticle>", "bad_citation"),
        ("<PubmedBookArticle><BookDocument><PMID>5</PMID></BookDocument></PubmedBookArticle>", "book"),
    ],
    ids=["none", "blank", "letters", "zero", "too-great", "empty", "no-article", "book"],
)
def test_each_other_citation_has_one_reason_and_costs_no_other(
    write: Write, citations: Read, element: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = write({NAME: pubmed_of(citation(1), element, citation(MAX_NUMBER))})
    with caplog.at_level(logging.WARNING):
        counts, documents = citations(folder, max_damaged_fraction=0.5)
    assert [document.id for document in documents] == ["PMID1", f"PMID{MAX_NUMBER}"]
    assert reasons(counts) == {reason: 1}
    assert ("citation 2 is lost (bad_citation:" in caplog.text) == (reason == "bad_citation")


def test_many_damaged_citations_fail_the_stage(write: Write, citations: Read) -> None:
    folder = write({NAME: pubmed_of(citation(1), citation("x"))})
    with pytest.raises(CrawlError, match=r"1 of the 2 citations of '.*in' are damaged \(1 bad_citation\)"):
        citations(folder)


def test_no_document_is_an_error_with_the_reasons(write: Write, citations: Read) -> None:
    folder = write({NAME: pubmed_of(citation(1, abstract=""), citation(2), deleted(2, 9))})
    with pytest.raises(CrawlError, match=r"None of the 2 citations of .* \(1 no_abstract, 1 deleted\). Expected"):
        citations(folder)


def test_a_file_that_is_cut_anywhere_is_an_error_unless_it_is_allowed(write: Write, citations: Read) -> None:
    draw = random.Random(4)
    whole = pubmed_of(*(citation(n, title=draw.randbytes(4000).hex()) for n in range(1, 60)))
    plain = gzip.decompress(whole)
    cuts = [whole[:-1], whole[:-8], *(whole[: draw.randrange(len(whole) // 2, len(whole))] for _ in range(2))]
    cuts += [gzip.compress(plain[: draw.randrange(20_000, len(plain) - 3)]) for _ in range(2)]
    flipped = bytearray(whole)
    flipped[-6] ^= 1  # the checksum
    broken = gzip.compress(plain[:-3000] + b"<x" + plain[-3000:])
    for content in [*cuts, bytes(flipped), broken]:
        folder = write({NAME: content})
        with pytest.raises(ShardError, match=rf"The file '{NAME}' is damaged or cut after \d+ citations \("):
            citations(folder)
        counts, documents = citations(folder, allow_cut_files=True)
        assert counts["cut_files"] == 1
        assert 1 <= len(documents) == counts["citations"] < 60


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (b"<html><body>busy</body></html>", "its root is <html>, expected <PubmedArticleSet>"),
        (b"\x00\x01\x02", "Start tag expected"),
        (b"<PubmedArticleSet>" + b" " * 2**24, "Text node too long"),
        (b"<PubmedArticleSet>" + b"<x>%s</x>" % (b" " * 1000) * 17_000, "more than 16,777,216 bytes without the end"),
    ],
    ids=["empty", "html", "binary", "endless-text", "endless-elements"],
)
def test_a_file_that_is_no_pubmed_is_refused(write: Write, citations: Read, content: bytes, why: str) -> None:
    with pytest.raises(ShardError, match=rf"damaged or cut after 0 citations \(.*{re.escape(why)}"):
        citations(write({"pubmed25n0001.xml": content}))


def test_entities_neither_expand_nor_read_files(tmp_path: Path, write: Write, citations: Read) -> None:
    (tmp_path / "secret").write_text("secret")
    bomb = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(9))
    heads = [
        f'<!DOCTYPE PubmedArticleSet [<!ENTITY a0 "x">{bomb}]>',
        f'<!DOCTYPE PubmedArticleSet [<!ENTITY a9 SYSTEM "file://{tmp_path}/secret">]>',
        f'<!DOCTYPE PubmedArticleSet [<!ENTITY % a9 SYSTEM "file://{tmp_path}/secret"> %a9;]>',
    ]
    texts = ["<AbstractText>&a9;</AbstractText>", '<AbstractText Label="&a9;">x</AbstractText>', ABSTRACT]
    for head in heads:
        for text in texts[: 2 if "% a9" not in head else 3]:
            folder = write({NAME: pubmed_of(citation(1, abstract=text), head=head)})
            with pytest.raises(ShardError, match="damaged or cut after 0 citations"):
                citations(folder)


def test_named_characters_of_html_are_read(write: Write, citations: Read) -> None:
    folder = write({NAME: pubmed_of(citation(1, abstract="<AbstractText>a &alpha;-owl</AbstractText>"), head=HEAD)})
    assert citations(folder)[1][0].text.endswith("a α-owl")


def test_a_checksum_beside_a_file_is_compared(write: Write, citations: Read) -> None:
    content = pubmed_of(citation(1))
    folder = write(
        {NAME: content, f"{NAME}.md5": digest_of(NAME, content), "pubmed25n0002.xml": gzip.decompress(content)}
    )
    counts, _ = citations(folder)
    assert counts["verified_files"] == 1
    assert "ignored_files" not in counts
    write({f"{NAME}.md5": digest_of(NAME, b"other"), "README.txt": b""})
    with pytest.raises(
        ShardError, match=rf"The file '{NAME}' has the MD5 [0-9a-f]{{32}}, expected [0-9a-f]{{32}} by '.*md5'"
    ):
        citations(folder)
    write({f"{NAME}.md5": b"<html>"})
    with pytest.raises(ShardError, match="expected an MD5 of 32 hex digits"):
        citations(folder)


def test_files_on_a_server_and_in_a_list_are_read_through_faults(
    write: Write, citations: Read, server: CrawlServer
) -> None:
    draw = random.Random(6)
    names = [f"baseline/pubmed25n000{n}.xml.gz" for n in (1, 2)]
    abstract = "<AbstractText>{}</AbstractText>"
    files = {
        name: pubmed_of(*(citation(n, abstract=abstract.format(draw.randbytes(30_000).hex())) for n in range(k, k + 9)))
        for k, name in enumerate(names, 1)
    }
    folder = write(files)
    whole = citations(folder)[1]
    server.files = {
        **files,
        f"{names[0]}.md5": digest_of(NAME, files[names[0]]),
        "all.paths": "\n".join(names).encode(),
    }
    server.fault(names[0], "busy", "cut", "hang_up", "ignore_range", "cut")
    counts, documents = citations(server.url + "all.paths", base_url=server.url)
    assert documents == whole
    assert counts["verified_files"] == 1
    server.files[f"{names[0]}.md5"] = digest_of(NAME, b"other")
    with pytest.raises(ShardError, match="has the MD5"):
        citations(server.url + names[0])


def test_files_in_a_bucket_are_read(any_prefix: str, write: Write, citations: Read) -> None:
    content = pubmed_of(citation(1), citation(2), citation(1, version=2))
    whole = citations(write({NAME: content, f"{NAME}.md5": digest_of(NAME, content)}))
    for name, data in ((NAME, content), (f"{NAME}.md5", digest_of(NAME, content))):
        write_bytes(join(any_prefix, "in", name), data)
    assert citations(join(any_prefix, "in")) == whole


@pytest.mark.parametrize("field", ["shard_bytes", "max_connections"])
def test_a_wrong_field_is_refused(tmp_path: Path, citations: Read, field: str) -> None:
    with pytest.raises(CrawlError, match=f"{field} is 0"):
        citations(tmp_path, **{field: 0})


def test_a_folder_without_files_is_refused(write: Write, citations: Read) -> None:
    with pytest.raises(
        CrawlError, match=r"No PubMed file exists below '.*in': it has 'a\.txt'. Expected names that end"
    ):
        citations(write({"a.txt": b"x"}))


@pytest.mark.long
def test_all_real_citations_are_read(citations: Read, caplog: pytest.LogCaptureFixture) -> None:
    from lxml import etree

    folder = real_files()
    labels, languages, with_text = Counter[str](), Counter[str](), 0
    for path in sorted(folder.glob("pubmed2?n*.xml.gz")):
        root = etree.fromstring(gzip.decompress(path.read_bytes()))
        for abstract in root.iterfind("PubmedArticle/MedlineCitation/Article"):
            texts = [part for part in abstract.iterfind("Abstract/AbstractText") if "".join(part.itertext()).strip()]
            with_text += bool(texts)
            if texts:
                languages.update(language.text for language in abstract.iterfind("Language"))
                labels["labelled"] += any(part.get("Label") not in (None, "", "UNLABELLED") for part in texts)
    began_s = time.process_time()
    counts, documents = citations(_only_gz(folder))
    spent_s = time.process_time() - began_s
    print(f"{counts['citations'] / spent_s:,.0f} citations/cpu-s")
    assert (counts["files"], counts["citations"], counts["deletions"]) == (2, 50_788, 20)
    assert counts["documents"] + counts["rejected_superseded"] + counts["rejected_deleted"] == with_text == 33_277
    assert counts["rejected_no_abstract"] == 50_788 - 33_277
    assert counts["rejected_bad_citation"] == 0
    lost = counts["rejected_superseded"] + counts["rejected_deleted"]
    read = Counter(language for document in documents for language in document.metadata["languages"])
    assert sum((languages - read).values()) <= lost
    assert labels["labelled"] - sum("\n\n## " in document.text for document in documents) <= lost
    assert len({document.id for document in documents}) == len(documents)
    assert sum("license" in document.metadata for document in documents) > 13_000


def _only_gz(folder: Path) -> Path:
    place = folder.parent / "gz"
    place.mkdir(exist_ok=True)
    for path in folder.glob("pubmed2?n*.xml.gz"):
        if not (place / path.name).exists():
            (place / path.name).symlink_to(path)
    return place


@pytest.mark.long
def test_memory_stays_flat_over_ten_times_the_input(tmp_path: Path, write: Write) -> None:
    draw, kilobytes = random.Random(5), []
    for copies in (300, 3000):
        text = "<AbstractText>{}</AbstractText>"
        parts = (citation(n, abstract=text.format(draw.randbytes(10_000).hex())) for n in range(1, copies))
        folder = write({NAME: pubmed_of(*parts)}, str(copies))
        fields = {"input_path": str(folder), "output_path": str(tmp_path / f"out{copies}")}
        code = (
            f"import sys; sys.path.append({str(Path(pubmed_files.__file__).parent)!r}); import pubmed_files; "
            f"sys.argv[1:] = ['read_pubmed', {json.dumps(fields)!r}]; pubmed_files.main(); "
            "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
        )
        output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        kilobytes.append(int(output.split("\n")[1]))
    assert kilobytes[1] < kilobytes[0] + 20_000
