"""Documents, and the files that stages read and write: shards of documents, and files of attributes for them.

May import marin_resources and libraries; not Dagster, Ray, a stage or any other part of marin_assets.
"""

from marin_assets.documents.document import BadRow, Document, DocumentError, page_of
from marin_assets.documents.formats import FORMATS, check_format, format_of
from marin_assets.documents.frames.pages import Page, PageError, count_rows, find_row, read_page
from marin_assets.documents.jsonl.json_line import RepeatedKeys
from marin_assets.documents.rows import read_rows, write_rows
from marin_assets.documents.shards import (
    SUFFIX,
    DocumentFiles,
    document_files,
    document_shards,
    list_shards,
    output_name,
    read_documents,
    shard_name,
    write_documents,
)

__all__ = [
    "FORMATS",
    "SUFFIX",
    "BadRow",
    "Document",
    "DocumentError",
    "DocumentFiles",
    "Page",
    "PageError",
    "RepeatedKeys",
    "check_format",
    "count_rows",
    "document_files",
    "document_shards",
    "find_row",
    "format_of",
    "list_shards",
    "output_name",
    "page_of",
    "read_documents",
    "read_page",
    "read_rows",
    "shard_name",
    "write_documents",
    "write_rows",
]
