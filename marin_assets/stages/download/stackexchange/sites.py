"""The files of a dump that have posts, and the site of each.

dba.stackexchange.com.7z            all tables of a site
stackoverflow.com-Posts.7z          one table of a large one; "-Users.7z" and so on are ignored
dba.stackexchange.com/Posts.xml     a table that was extracted
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from marin_assets.documents.formats import COMPRESSIONS
from marin_assets.stages.download.crawl.crawl_file import CrawlFile
from marin_assets.stages.download.warc.record import CrawlError

SUFFIXES = (".7z", *(f"posts.xml{compression}" for compression in ("", *COMPRESSIONS)))
OTHER_TABLE = re.compile(r"(?:^|[-_/])(?:badges|comments|posthistory|postlinks|tags|users|votes)\.7z$", re.IGNORECASE)
SITE = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+")
POSTS = re.compile(r"(?:^|[-_])posts$")
ENDING = re.compile(rf"\.(?:7z|xml(?:{'|'.join(map(re.escape, COMPRESSIONS))})?)$")


def is_of_posts(file: CrawlFile) -> bool:
    """Whether it may have posts: not a table of another kind, by its name."""
    return OTHER_TABLE.search(file.name) is None


def site_of(file: CrawlFile, given: str) -> str:
    """Return the host of the site of a file, by its name or its folder's; `given`, if it is not "".

    Raises CrawlError for a name without one.
    """
    if given:
        return given
    *folders, name = file.path.replace("\\", "/").lower().split("/")
    stem = POSTS.sub("", ENDING.sub("", name))
    site = stem or (folders[-1] if folders else "")
    if SITE.fullmatch(site) is None:
        raise CrawlError(
            f"The file {file.path!r} has no site in its name, expected one such as 'dba.stackexchange.com.7z', "
            "'stackoverflow.com-Posts.7z' or 'dba.stackexchange.com/Posts.xml'. Rename it, or pass site."
        )
    return site


def check_site(site: str) -> None:
    """Raise CrawlError for a site that is no host."""
    if site and SITE.fullmatch(site) is None:
        raise CrawlError(f"site is {site!r}, expected a host such as 'dba.stackexchange.com', or ''. Correct it.")


def in_order(files: Sequence[CrawlFile], given: str) -> list[tuple[str, CrawlFile]]:
    """Return the files with their sites, by site; those of one site in the order of their names."""
    return sorted(((site_of(file, given), file) for file in files), key=lambda item: (item[0], item[1].name))
