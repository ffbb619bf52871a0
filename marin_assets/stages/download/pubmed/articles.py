"""One article of PMC as a page: a document whose text is JATS, or the reason why it is none.

    <article><front><journal-meta>…</journal-meta>
      <article-meta><article-id pub-id-type="pmc">3166277</article-id><title-group>…</title-group>
        <permissions><license xlink:href="https://creativecommons.org/licenses/by/2.0/">…</license></permissions>
      </article-meta></front><body>…</body><back>…</back></article>

The text is XML as lxml writes it: without a declaration, a document type, comments and processing instructions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from marin_assets.documents import Document
from marin_assets.documents.xml.inline import inline_text, local_name
from marin_assets.documents.xml.parse import BadXmlError, parsed

if TYPE_CHECKING:
    from lxml import etree

DAMAGES = ("bad_xml", "entities", "too_deep", "bad_article")
"""No well-formed XML; it declares entities; elements nested too deeply; no article, or one without a PMCID."""
HREF = "{http://www.w3.org/1999/xlink}href"
LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
PMCID = re.compile(r"(?:PMC)?([0-9]{1,8})(?:\.[0-9]{1,3})?")
FILE_NAME = re.compile(r"(?:.*/)?PMC([0-9]{1,8})(?:\.[0-9]{1,3})?\.n?xml", re.IGNORECASE)
SUBSET = re.compile(r"oa_(?:comm|noncomm|other)")
YEAR = re.compile(r"1[5-9]\d\d|20\d\d")
MAX_STATEMENT = 1000
"""Characters of a licence's text in the metadata."""
CREATIVE_COMMONS = "creativecommons.org/"


@dataclass(frozen=True, kw_only=True)
class Article:
    """A page, and the number of its PMCID."""

    number: int
    page: Document


def article_of(content: bytes, member: str, file: str, *, source: str) -> Article | tuple[str, str]:
    """Return the article of a member of an archive, or its reason, of DAMAGES, and a detail for the log."""
    from lxml import etree

    try:
        root = parsed(content)
    except BadXmlError as error:
        return error.reason, str(error)
    meta = root.find("front/article-meta")
    if root.tag != "article" or meta is None:
        return "bad_article", f"its root is <{root.tag:.80}>, {'without' if meta is None else 'with'} article-meta"
    ids = {item.get("pub-id-type") or "": inline_text(item) for item in meta.iterfind("article-id")}
    number = _number(ids, member)
    if number is None:
        return "bad_article", f"no PMCID among {sorted(ids)}"
    subset = SUBSET.search(file) or SUBSET.search(member)
    metadata = {
        "url": f"https://pmc.ncbi.nlm.nih.gov/articles/PMC{number}/",
        "pmcid": f"PMC{number}",
        "title": _title(meta),
        "journal": _journal(root),
        **_year(meta),
        **{name: ids[name] for name in ("doi", "pmid") if ids.get(name)},
        "type": root.get("article-type") or "",
        "language": root.get(LANGUAGE) or "",
        **_license(meta),
        **({"subset": subset[0]} if subset else {}),
        "file": file,
    }
    text = etree.tostring(root, encoding="unicode")
    origin = source or (subset[0] if subset else "pmc")
    return Article(number=number, page=Document(id=f"PMC{number}", text=text, source=origin, metadata=metadata))


def _number(ids: dict[str, str], member: str) -> int | None:
    for kind in ("pmcid", "pmc"):
        if (match := PMCID.fullmatch(ids.get(kind, ""))) and int(match[1]):
            return int(match[1])
    match = FILE_NAME.fullmatch(member)
    return int(match[1]) or None if match else None


def _title(meta: etree._Element) -> str:
    title = meta.find("title-group/article-title")
    return "" if title is None else inline_text(title)


def _journal(root: etree._Element) -> str:
    for path in ("journal-title-group/journal-title", "journal-title", "journal-id"):
        if (name := root.find(f"front/journal-meta/{path}")) is not None:
            return inline_text(name)
    return ""


def _year(meta: etree._Element) -> dict[str, int]:
    """The first year of publication that the article states."""
    years = [
        int(text) for date in meta.iterfind("pub-date") if YEAR.fullmatch(text := (date.findtext("year") or "").strip())
    ]
    return {"year": min(years)} if years else {}


def _license(meta: etree._Element) -> dict[str, Any]:
    """license: its address, else its type or text; license_text, and copyright, as far as stated."""
    statement = meta.find("permissions/copyright-statement")
    rights = {"copyright": inline_text(statement)[:MAX_STATEMENT]} if statement is not None else {}
    licenses = [element for element in meta.iter() if local_name(element) == "license"]
    if not licenses:
        return rights
    license_, text = licenses[0], inline_text(licenses[0])
    links = [license_.get(HREF) or ""]
    links += [(ref.text or "").strip() for ref in license_.iter() if local_name(ref) == "license_ref"]
    links += [ref.get(HREF) or "" for ref in license_.iter() if CREATIVE_COMMONS in (ref.get(HREF) or "")]
    address = next((link for link in links if link), "")
    rights["license"] = address or license_.get("license-type") or text[:MAX_STATEMENT]
    return {**rights, **({"license_text": text[:MAX_STATEMENT]} if text else {})}
