"""Links from Dagster's pages to files of a store."""

from __future__ import annotations

from urllib.parse import quote

import dagster as dg

from marin_resources.dagster_fixes.output_pages import address_of
from marin_resources.storage.paths import StoreKind, kind_of, without_scheme

GCS_PAGE = "https://storage.cloud.google.com"
"""Address of the page of an object, for a browser that is signed in to Google."""


def link_to(path: str) -> dg.MetadataValue:
    """A link if the file is on GCS, or if the UI's server has it (`dagster_fixes/output_pages.py`); else its path, as a
    browser opens no local file from a page of a server."""
    if kind_of(path) is StoreKind.GCS:
        return dg.MetadataValue.url(f"{GCS_PAGE}/{quote(without_scheme(path))}")
    address = address_of(path)
    return dg.MetadataValue.path(path) if address is None else dg.MetadataValue.url(address)
