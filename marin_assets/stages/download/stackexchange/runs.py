"""Posts on their way to their thread: an external sort by the id of the thread.

A run is a sorted file: as many posts of one dump as fit into memory, in frames of zstd. `Frames` is the index of all
runs of a dump, written at the end. A range of threads is read by merging the frames that overlap it: of each run one
frame is in memory. Ranges divide all threads of a site into shards of about the same size, and no thread is divided.
"""

from __future__ import annotations

import heapq
import json
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field

from marin_assets.stages.download.stackexchange.posts import MAX_ID, Post
from marin_assets.stages.download.warc.record import CrawlError
from marin_resources.storage.files import open_atomic, read_bytes, write_bytes
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.paths import join

RUN_BYTES = 128 * 2**20
"""Posts in memory, which become a run. A dump of 100 GB has 800 runs."""
FRAME_BYTES = 256 * 2**10
"""Bytes of posts of a frame."""
COLUMNS = 6


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A part of a run that is read at once."""

    run: int
    first: int
    """The first thread of it."""
    last: int
    offset: int
    size: int
    bytes: int
    """Size without compression."""


@dataclass(kw_only=True)
class Frames:
    """The frames of a dump's runs, in order."""

    numbers: array[int] = field(default_factory=lambda: array("q"))
    """The six numbers of each frame."""

    def add(self, frame: Frame) -> None:
        self.numbers.extend(asdict(frame).values())

    def __iter__(self) -> Iterator[Frame]:
        rows = iter(self.numbers)
        for run, first, last, offset, size, raw in zip(*[rows] * COLUMNS, strict=True):
            yield Frame(run=run, first=first, last=last, offset=offset, size=size, bytes=raw)

    def write(self, path: str) -> None:
        write_bytes(path, self.numbers.tobytes())


def read_frames(path: str) -> Frames:
    return Frames(numbers=array("q", read_bytes(path)))


class RunWriter:
    """Writes posts as runs into a folder."""

    def __init__(self, folder: str) -> None:
        self._folder, self._runs = folder, 0
        self._posts: list[tuple[int, bool, int, bytes]] = []
        self._bytes = 0
        self.frames = Frames()

    def add(self, post: Post) -> None:
        line = _line(post)
        self._posts.append((post.thread, post.is_answer, post.id, line))
        self._bytes += len(line)
        if self._bytes >= RUN_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what is in memory as a run."""
        if not self._posts:
            return
        self._posts.sort(key=lambda post: post[:3])  # stable: the first of equal ids stays first
        with open_atomic(run_path(self._folder, self._runs), replace=False) as out:
            frame: list[bytes] = []
            first = size = offset = 0
            for number, (thread, _, _, line) in enumerate(self._posts, 1):
                first = first if frame else thread
                frame.append(line)
                size += len(line)
                if size >= FRAME_BYTES or number == len(self._posts):
                    data = _compressed(b"".join(frame))
                    out.write(data)
                    self.frames.add(
                        Frame(run=self._runs, first=first, last=thread, offset=offset, size=len(data), bytes=size)
                    )
                    offset, size = offset + len(data), 0
                    frame.clear()
        self._runs += 1
        self._posts.clear()
        self._bytes = 0


def run_path(folder: str, run: int) -> str:
    return join(folder, f"{run:05}.run")


def ranges(dumps: Sequence[Frames], shard_bytes: int) -> list[tuple[int, int]]:
    """Return ranges of threads, from one to before another, with about `shard_bytes` of posts each; at least one."""
    starts = sorted((frame.first, frame.bytes) for frames in dumps for frame in frames)
    borders, size = [0], 0
    for first, frame_bytes in starts:
        if size >= shard_bytes and first > borders[-1]:
            borders.append(first)
            size = 0
        size += frame_bytes
    return list(zip(borders, [*borders[1:], MAX_ID], strict=True))


def read_range(folders: Sequence[str], dumps: Sequence[Frames], first: int, end: int) -> Iterator[Post]:
    """Yield the posts of the threads from `first` to before `end`, by thread, questions first, and id; of equal ones
    that of the first dump, and in it the first, is first."""
    parts = []
    for folder, frames in zip(folders, dumps, strict=True):
        by_run: dict[int, list[Frame]] = {}
        for frame in frames:
            if frame.last >= first and frame.first < end:
                by_run.setdefault(frame.run, []).append(frame)
        parts += [_posts(run_path(folder, run), of_run, first, end) for run, of_run in sorted(by_run.items())]
    yield from heapq.merge(*parts, key=lambda post: (post.thread, post.is_answer, post.id))


def _posts(path: str, frames: Sequence[Frame], first: int, end: int) -> Iterator[Post]:
    import zstandard

    fs, place = filesystem_of(path)
    for frame in frames:
        data = fs.cat_file(place, start=frame.offset, end=frame.offset + frame.size)
        try:
            lines = zstandard.ZstdDecompressor().decompress(data)
        except zstandard.ZstdError as error:
            raise CrawlError(
                f"{path!r}, a file of the step itself, is damaged at byte {frame.offset} ({error}). Remove the output, "
                "and run the step again."
            ) from error
        for line in lines.splitlines():
            post = _post(line)
            if first <= post.thread < end:
                yield post


def _compressed(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(level=1, write_checksum=True).compress(data)


def _line(post: Post) -> bytes:
    row = [getattr(post, name) for name in Post.__slots__]
    return json.dumps(row).encode() + b"\n"


def _post(line: bytes) -> Post:
    row = dict(zip(Post.__slots__, json.loads(line), strict=True))
    return Post(**{**row, "tags": tuple(row["tags"])})
