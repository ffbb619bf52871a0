"""Create the steps of a crawl of one's own: from pages or a list of addresses to filtered documents, and their
yield."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from marin_assets.defaults.environment import curated
from marin_assets.defaults.sources.crawl import source_path
from marin_assets.stages.consolidate.consolidate import Applied, ConsolidateConfig, consolidate
from marin_assets.stages.dedup.decide_near_duplicates import DecideNearDuplicatesConfig, decide_near_duplicates
from marin_assets.stages.dedup.near_duplicates import FindNearDuplicatesConfig, find_near_duplicates
from marin_assets.stages.download.crawl.read_warc import ReadWarcConfig, read_warc
from marin_assets.stages.download.fetch.fetch_pages import FetchPagesConfig, fetch_pages
from marin_assets.stages.download.fetch.publish import OUTCOMES, WARC
from marin_assets.stages.download.links.extract_outlinks import ExtractOutlinksConfig, extract_outlinks
from marin_assets.stages.filter.filter_documents import FilterDocumentsConfig, filter_documents
from marin_assets.stages.filter.registry import FilterSpec, fineweb_filters
from marin_assets.stages.report.crawl_yield import CrawlStage, CrawlYieldConfig, crawl_yield
from marin_assets.stages.transform.html.main_content import MainContent
from marin_assets.stages.transform.html_to_markdown import HtmlToMarkdownConfig, html_to_markdown
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation, expect
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, InputName, output_path_of, versioned


@dataclass(frozen=True, kw_only=True)
class OwnCrawl:
    """The steps of a crawl of one's own, in their order."""

    outlinks: Step | None
    """The list of addresses, if they are links of pages."""
    fetched: Step
    """WARC files, and the outcome of each address."""
    pages: Step
    documents: Step
    """The main content of each page."""
    clusters: Step
    near_duplicates: Step
    unique: Step
    """The documents without a near-duplicate in the crawl and in other corpora."""
    filters: Step
    kept: Step
    """The documents that the filters keep."""
    crawl_yield: Step

    @property
    def steps(self) -> tuple[Step, ...]:
        steps = (self.outlinks, self.fetched, self.pages, self.documents, self.clusters, self.near_duplicates)
        later = (self.unique, self.filters, self.kept, self.crawl_yield)
        return tuple(step for step in (*steps, *later) if step is not None)


@checks_arguments("pages", "seeds", "seen", "against")
def default_crawl(
    name: str,
    *,
    contact: str,
    pages: Step | InputName | str | None = None,
    seeds: Step | InputName | str | Sequence[str] | None = None,
    seen: Mapping[str, Step | InputName | str] | None = None,
    against: Mapping[str, Step | InputName | str] | None = None,
    filters: Sequence[FilterSpec] | None = None,
    sample_fraction: float = 1.0,
    max_pages: int | None = None,
    max_hours: float = 24.0,
    agent: str = "MarinDagsterBot",
    delay_s: float = 1.0,
    connections: int = 64,
    allowed_networks: Sequence[str] = (),
    hosts: Mapping[str, str] | None = None,
) -> OwnCrawl:
    """Return the steps of a crawl of one's own, from the addresses to documents and their yield.

    The addresses are the links of `pages`, documents whose text is HTML, to other sites; or `seeds`: rows or a text
    file of addresses, or the addresses themselves. `contact` is an address of the web or of mail, by which the owner
    of a site can reach you. `seen` are lists of addresses that are left out of the links; `against` are corpora: a page
    with a near-duplicate in one is dropped before the filters. `filters` are FineWeb's if None. `delay_s`,
    `connections`, `allowed_networks` and `hosts` enter no version.
    """
    if (pages is None) == (seeds is None):
        raise ConfigError(f"default_crawl({name!r}) has pages={pages!r} and seeds={seeds!r}, expected one of them.")
    if pages is None and (seen or sample_fraction != 1.0):
        raise ConfigError(
            f"default_crawl({name!r}) has seeds with seen={seen!r} or sample_fraction={sample_fraction!r}, which are "
            "for the links of pages. Leave them out."
        )
    outlinks = None if pages is None else _outlinks(name, pages, seen or {}, sample_fraction)
    urls_path, urls = _addresses(outlinks, seeds)
    fetched = curated(
        f"crawls/{name}",
        fetch_pages,
        FetchPagesConfig(
            contact=versioned(contact),
            urls_path=urls_path,
            urls=versioned(urls),
            agent=versioned(agent),
            max_pages=versioned(max_pages),
            max_hours=versioned(max_hours),
            delay_s=delay_s,
            connections=connections,
            allowed_networks=tuple(allowed_networks),
            hosts=dict(hosts or {}),
        ),
        expectations=[expect("urls_unaccounted", at_least=0, at_most=0), expect("fetched", at_least=1)],
    )
    raw = curated(
        f"raw/{name}", read_warc, ReadWarcConfig(input_path=output_path_of(fetched, WARC), source=versioned(name))
    )
    documents = curated(
        f"documents/{name}",
        html_to_markdown,
        # whole pages: the filters and near-duplicates are of pages
        HtmlToMarkdownConfig(
            pages_path=output_path_of(raw), main_content=MainContent(), max_characters=versioned(None)
        ),
    )
    return _filtered(
        name, outlinks, fetched, raw, documents, against or {}, fineweb_filters() if filters is None else filters
    )


def _addresses(
    outlinks: Step | None, seeds: Step | InputName | str | Sequence[str] | None
) -> tuple[str | None, tuple[str, ...]]:
    """The path of a list, and addresses."""
    if outlinks is not None:
        return output_path_of(outlinks), ()  # type: ignore[return-value]
    if isinstance(seeds, Step | InputName | str):
        return source_path(seeds), ()
    return None, tuple(seeds or ())


def _outlinks(
    name: str, pages: Step | InputName | str, seen: Mapping[str, Step | InputName | str], sample_fraction: float
) -> Step:
    config = ExtractOutlinksConfig(
        pages_path=source_path(pages),
        seen={key: source_path(source) for key, source in seen.items()},
        sample_fraction=versioned(sample_fraction),
    )
    return curated(f"outlinks/{name}", extract_outlinks, config)


def _filtered(
    name: str,
    outlinks: Step | None,
    fetched: Step,
    raw: Step,
    documents: Step,
    against: Mapping[str, Step | InputName | str],
    filters: Sequence[FilterSpec],
) -> OwnCrawl:
    """Near-duplicates first: they are most of what the filters would keep, and the filters cost more."""
    path = output_path_of(documents)
    clusters = curated(
        f"clusters/{name}",
        find_near_duplicates,
        FindNearDuplicatesConfig(
            documents_path=path, against={key: source_path(source) for key, source in against.items()}
        ),
    )
    copies = curated(
        f"attributes/{name}/near_duplicates",
        decide_near_duplicates,
        DecideNearDuplicatesConfig(documents_path=path, clusters_path=output_path_of(clusters)),
    )
    unique = _consolidated(f"unique/{name}", documents, "near_duplicates", copies)
    judged = curated(
        f"attributes/{name}/filters",
        filter_documents,
        FilterDocumentsConfig(documents_path=output_path_of(unique), filters=tuple(filters)),
    )
    kept = _consolidated(f"crawled/{name}", unique, "filters", judged, expect("kept", at_least=1))
    stages = [("pages", raw), ("main_content", documents), ("unique", unique), ("kept", kept)]
    counted = curated(
        f"yields/{name}",
        crawl_yield,
        CrawlYieldConfig(
            outcomes_path=output_path_of(fetched, OUTCOMES),
            stages=[CrawlStage(name=stage, documents_path=output_path_of(step)) for stage, step in stages],
        ),
    )
    return OwnCrawl(
        outlinks=outlinks,
        fetched=fetched,
        pages=raw,
        documents=documents,
        clusters=clusters,
        near_duplicates=copies,
        unique=unique,
        filters=judged,
        kept=kept,
        crawl_yield=counted,
    )


def _consolidated(name: str, documents: Step, attribute: str, decisions: Step, *expectations: Expectation) -> Step:
    return curated(
        name,
        consolidate,
        ConsolidateConfig(
            documents_path=output_path_of(documents),
            attributes=[Applied(name=attribute, path=output_path_of(decisions))],
        ),
        unaccounted="documents_unaccounted",
        expectations=expectations,
    )
