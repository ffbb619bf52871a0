"""Find near-duplicates: documents whose MinHash signatures agree in a band, and the clusters that they form.

In:  documents.
Out: a cluster table, shard for shard under the same names: one row for each document that has a near-duplicate,

         {"id", "shard", "row", "cluster", "size", "source", "characters", "tie"}

     `shard` and `row` identify the document, both from 0, since ids may repeat. `cluster` is the number of the
     cluster's first document, shard times 2^32 plus row; `size` is the number of its documents; `tie` is a hash of the
     text.
     With `against`, documents of other corpora are in the clusters, without rows: a row of a cluster with one of them
     has {"against": true} too, and `decide_near_duplicates` keeps none of its documents.
     `decide_near_duplicates` chooses the document that is kept. The documents do not change.

Tasks sign documents shard by shard (`signatures`) and link them band by band (`links`). Then this process computes the
clusters of all links (`clusters`), the global part: 2 µs and at most 90 bytes for each document that has a
near-duplicate. Last, tasks write the rows of each shard, with 20 bytes of memory for each.

Until the end the output has hidden files: 12 bytes a band for each document, and the links.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from marin_assets.documents import (
    SUFFIX,
    Document,
    DocumentError,
    document_files,
    document_shards,
    output_name,
    read_documents,
    write_rows,
)
from marin_assets.stages.dedup import bands
from marin_assets.stages.dedup.by_shard import ShardRecords, read_by_shard, write_by_shard
from marin_assets.stages.dedup.clusters import Clusters, clusters_of
from marin_assets.stages.dedup.links import LISTING, LinkConfig, link_band, ranges_for, read_links, write_listing
from marin_assets.stages.dedup.minhash import FINEWEB, MinHash, MinHashError, require_sound
from marin_assets.stages.dedup.signatures import SignConfig, sign_shard
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard, folder_state
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.files import remove_folder, sizes_below
from marin_resources.storage.paths import join

if TYPE_CHECKING:
    from numpy.typing import NDArray

KINDS = ("minhash",)

HIDDEN = ".marin/near_duplicates"


@dataclass(frozen=True, kw_only=True)
class FindNearDuplicatesConfig:
    documents_path: str
    output_path: str = THIS_OUTPUT_PATH
    minhash: MinHash = versioned(FINEWEB)
    """FINEWEB, NEMO_CURATOR, ZYDA, or other settings."""
    against: Mapping[str, str] = field(default_factory=dict)
    """Name -> documents of another corpus, of which near-duplicates are found too. Their order by name has no effect on
    the result. Wrap a path in versioned(), unless it is the output of a step."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


@dataclass(frozen=True, kw_only=True)
class ClusterTableConfig:
    """The config of `write_table`."""

    members: ShardRecords
    """Those of these shards' documents that are in a cluster: number, cluster, size."""


def find_near_duplicates(config: FindNearDuplicatesConfig) -> dict[str, int | float]:
    """Write the cluster table.

    Returns documents, documents_without_words (which have no near-duplicate), links, clusters, largest_cluster,
    documents_in_clusters, and duplicates (documents_in_clusters minus clusters). With `against` all counts but
    documents are of the union, and documents_against and duplicates_against are those of the other corpora, and the
    documents with a near-duplicate in them. Raises MinHashError.
    """
    _check(config)
    hidden, minhash = join(config.output_path, HIDDEN), config.minhash
    documents = document_files(config.documents_path)
    signed = document_shards(documents, join(hidden, "bands"), SignConfig(minhash=minhash), suffix=bands.SUFFIX)
    others = against_shards(config, hidden)
    counts = map_shards(sign_shard, [*signed, *others], output_path=config.output_path)
    linking = link_shards(minhash, hidden, [*signed, *others], int(counts["documents"]))
    counts |= map_shards(link_band, linking, output_path=config.output_path)
    clusters = clusters_of([partial(read_links, shard.outputs[0]) for shard in linking])
    shards = [len(shard.inputs) for shard in signed]
    own, columns = own_members(clusters, sum(shards), is_against=bool(others))
    members = write_by_shard(join(hidden, "members.bin"), shards, own, columns)
    table = table_shards(config.output_path, signed, members)
    counts |= map_shards(write_table, table, output_path=config.output_path)
    if others:
        counts["duplicates_against"] = int(columns["against"].sum())
        counts["documents"] -= counts["documents_against"]
    remove_folder(hidden)
    count = int((clusters.documents == clusters.clusters).sum())
    return {
        **counts,
        "clusters": count,
        "duplicates": len(clusters.documents) - count,
        "largest_cluster": int(clusters.sizes.max(initial=0)),
        **documents.counts,
    }


def against_shards(config: FindNearDuplicatesConfig, hidden: str) -> list[FileShard]:
    """Return work for `sign_shard`: the documents of the other corpora, which are numbered after the own ones."""
    signing = SignConfig(minhash=config.minhash, is_against=True)
    return [
        shard
        for name, path in sorted(config.against.items())
        # no name of a document begins with a dot
        for shard in document_shards(path, join(hidden, "bands", ".against", name), signing, suffix=bands.SUFFIX)
    ]


def own_members(clusters: Clusters, shards: int, *, is_against: bool) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
    """Return the documents of the first `shards` shards that are in a cluster, and their columns."""
    import numpy as np

    own = clusters.documents < np.uint64(shards << 32)
    numbers = clusters.clusters[own]
    columns: dict[str, NDArray[Any]] = {"cluster": numbers, "size": clusters.sizes[own]}
    if is_against:
        columns["against"] = np.isin(numbers, np.unique(clusters.clusters[~own])).astype(np.uint8)
    return clusters.documents[own], columns


def _check(config: FindNearDuplicatesConfig) -> None:
    require_sound(config.minhash)
    for name in config.against:
        if not name.replace("_", "").isalnum():
            raise MinHashError(f"against has the name {name!r}, expected letters, digits and _. Rename it.")


def link_shards(minhash: MinHash, hidden: str, signed: Sequence[FileShard], documents: int) -> list[FileShard]:
    """Write the list of all band files, and return work for `link_band`: each range of each band."""
    sizes = sizes_below(join(hidden, "bands"))
    names = [output.removeprefix(join(hidden, "bands") + "/") for shard in signed for output in shard.outputs]
    listing = join(hidden, LISTING)
    write_listing(listing, [(name, sizes[name]) for name in names])
    ranges, state = ranges_for(documents), folder_state(join(hidden, "bands"))
    return [
        FileShard(
            inputs=(dataclasses.replace(state, size_bytes=12 * documents // len(ranges)),),
            outputs=(join(hidden, "links", f"band-{band:04d}-{slots.start:03d}-{slots.stop:03d}"),),
            config=LinkConfig(
                listing_path=listing, minhash=minhash, band=band, first_slot=slots.start, end_slot=slots.stop
            ),
        )
        for band in range(minhash.bands)
        for slots in ranges
    ]


def table_shards(output_path: str, signed: Sequence[FileShard], members: Sequence[ShardRecords]) -> list[FileShard]:
    """Return work for `write_table`: the signed documents, with those of them that are in a cluster."""
    return [
        FileShard(
            inputs=shard.inputs,
            outputs=tuple(join(output_path, output_name(file, SUFFIX)) for file in shard.inputs),
            config=ClusterTableConfig(members=own),
        )
        for shard, own in zip(signed, members, strict=True)
    ]


def write_table(shard: FileShard) -> dict[str, int]:
    """Write the rows of one group of shards. Returns documents_in_clusters."""
    count = 0
    for file, target, members in zip(shard.inputs, shard.outputs, read_by_shard(shard.config.members), strict=True):
        count += write_rows(target, _rows(file.path, members), replace=False)
    return {"documents_in_clusters": count}


def _rows(documents_path: str, members: Any) -> Iterator[dict[str, Any]]:
    if not len(members):
        return
    documents = enumerate(read_documents(documents_path))
    for number, cluster, size, *against in members.tolist():
        shard, row = number >> 32, number & (2**32 - 1)
        document = next((d for at, d in documents if at == row), None)
        if document is None:
            raise DocumentError(f"{documents_path!r} has lost its row {row} since it was signed. Run the step again.")
        yield {
            "id": document.id,
            "shard": shard,
            "row": row,
            "cluster": cluster,
            "size": size,
            "source": document.source,
            "characters": len(document.text),
            "tie": tie_of(document),
            **({"against": True} if any(against) else {}),
        }


def tie_of(document: Document) -> str:
    """Return 16 hexadecimal digits, a hash of the document's text alone."""
    import xxhash

    return xxhash.xxh3_64_hexdigest(document.text.encode("utf-8", "surrogatepass"))
