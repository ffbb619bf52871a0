"""Documents: the rows that text travels in, as shards of JSONL (plain, gz, zst) or parquet.

    {"id": "...", "text": "...", "source": "...", "metadata": {...}}

One line a document, keys in this order: the same documents are the same bytes. What stages write is JSONL compressed
with zstd, one frame a shard; what they read may have any of the formats.
"""

from marin_assets.documents.document import BadRow, Document, DocumentError
from marin_assets.documents.rows import FORMATS, check_format, read_rows, write_rows
from marin_assets.documents.shards import (
    SUFFIX,
    document_shards,
    list_shards,
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
    "check_format",
    "document_shards",
    "list_shards",
    "read_documents",
    "read_rows",
    "shard_name",
    "write_documents",
    "write_rows",
]
