"""One citation of PubMed as a document of title and abstract, or the reason why it is none.

    <PubmedArticle>
      <MedlineCitation><PMID Version="1">10704411</PMID>
        <Article><Journal>…</Journal><ArticleTitle>…</ArticleTitle>
          <Abstract><AbstractText Label="METHODS">…</AbstractText><CopyrightInformation/></Abstract>
          <Language>eng</Language></Article>
        <MeshHeadingList>…</MeshHeadingList></MedlineCitation>
      <PubmedData><ArticleIdList><ArticleId IdType="doi">…</ArticleId></ArticleIdList></PubmedData>
    </PubmedArticle>

NLM's DTD: https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from marin_assets.documents import Document
from marin_assets.documents.xml.inline import inline_text

if TYPE_CHECKING:
    from lxml import etree

ROOT = "PubmedArticleSet"
ELEMENTS = ("PubmedArticle", "PubmedBookArticle", "DeleteCitation")
DAMAGES = ("bad_citation",)
"""A citation without a PMID of one to eight digits, or without an article."""
REASONS = ("book", "no_abstract")
"""A chapter of a book, which PubMed has elsewhere; no abstract, or an empty one."""
PMID = re.compile(r"[0-9]{1,8}")
YEAR = re.compile(r"\b(1[5-9]\d\d|20\d\d)\b")
UNLABELLED = ("", "UNLABELLED")


@dataclass(frozen=True, kw_only=True)
class Citation:
    """A document, and what it is compared by with others of its PMID."""

    pmid: int
    version: int
    document: Document | None
    """None without an abstract."""


def citation_of(element: etree._Element, *, source: str, labels: bool) -> Citation | str:
    """Return the citation of an element, or a detail of its damage for the log. `labels`: keep labels as headings."""
    citation = element.find("MedlineCitation")
    article = None if citation is None else citation.find("Article")
    pmid = None if citation is None else citation.find("PMID")
    number = number_of(pmid)
    if citation is None or article is None or pmid is None or number is None:
        return f"PMID {'' if pmid is None else pmid.text!r:.40}, {'no' if article is None else 'an'} article"
    stated = pmid.get("Version") or ""
    version = int(stated) if PMID.fullmatch(stated) else 1
    abstract = _abstract(article, labels)
    if not abstract:
        return Citation(pmid=number, version=version, document=None)
    title = _title(article)
    document = Document(
        id=f"PMID{number}",
        text=f"# {title}\n\n{abstract}" if title else abstract,
        source=source,
        metadata={**_metadata(element, citation, article), "pmid": str(number), "version": version, "title": title},
    )
    return Citation(pmid=number, version=version, document=document)


def number_of(pmid: etree._Element | None) -> int | None:
    """The number of a <PMID>; None if it has none."""
    text = "" if pmid is None else (pmid.text or "").strip()
    return int(text) if PMID.fullmatch(text) and int(text) else None


def _title(article: etree._Element) -> str:
    element = article.find("ArticleTitle")
    title = "" if element is None else inline_text(element)
    return title or _text(article, "VernacularTitle")


def _abstract(article: etree._Element, labels: bool) -> str:
    """The abstract: a paragraph for each of its parts, below a heading where the label changes."""
    blocks = []
    last = ""
    for part in article.iterfind("Abstract/AbstractText"):
        text = inline_text(part)
        if not text:
            continue
        label = " ".join((part.get("Label") or "").split())
        if labels and label != last and label not in UNLABELLED:
            blocks.append(f"## {label}")
        last = label
        blocks.append(text)
    return "\n\n".join(blocks)


def _metadata(element: etree._Element, citation: etree._Element, article: etree._Element) -> dict[str, Any]:
    ids = {
        item.get("IdType") or "": (item.text or "").strip()
        for item in element.iterfind("PubmedData/ArticleIdList/ArticleId")
    }
    doi = ids.get("doi") or _text(article, "ELocationID[@EIdType='doi']")
    pmc = ids.get("pmc", "")
    date = _text(article, "Journal/JournalIssue/PubDate")
    year = YEAR.search(_text(article, "Journal/JournalIssue/PubDate/Year") or date)
    rights = _text(article, "Abstract/CopyrightInformation")
    return {
        "url": f"https://pubmed.ncbi.nlm.nih.gov/{number_of(citation.find('PMID'))}/",
        "journal": _text(article, "Journal/Title") or _text(citation, "MedlineJournalInfo/MedlineTA"),
        **({"year": int(year[0])} if year else {}),
        "languages": [inline_text(language) for language in article.iterfind("Language")],
        "types": [inline_text(kind) for kind in article.iterfind("PublicationTypeList/PublicationType")],
        "mesh": [inline_text(name) for name in citation.iterfind("MeshHeadingList/MeshHeading/DescriptorName")],
        **({"doi": doi} if doi else {}),
        **({"pmcid": pmc} if pmc else {}),
        **({"license": rights} if rights else {}),
    }


def _text(element: etree._Element, path: str) -> str:
    child = element.find(path)
    return "" if child is None else inline_text(child)
