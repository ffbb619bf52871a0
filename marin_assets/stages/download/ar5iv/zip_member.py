"""The content of one member of a zip archive, or the reason why it has none.

In bounded memory: of a member that inflates to more than its directory states, nothing beyond that is inflated.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from marin_assets.stages.download.warc.members import Readable, read_range

HEADER = struct.Struct("<4s5H3L2H")
"""The local header: signature, needed, flags, method, time, date, checksum, two sizes, lengths of name and extra."""
HEADER_MARK = b"PK\3\4"
STORED, DEFLATED = 0, 8
METHODS = (STORED, DEFLATED)
DAMAGES = ("encrypted", "unknown_method", "overlap", "cut_member", "bad_header", "bad_deflate", "wrong_size",
           "bad_checksum", "not_utf8")  # fmt: skip
"""The member is encrypted; is compressed by neither method; shares bytes with the one after it; ends with the file; its
header is none, or has another name; its stream is damaged; has another size, or another checksum than the directory
states; its text is no UTF-8."""
BLOCK_BYTES = 2**18


@dataclass(frozen=True, kw_only=True)
class Member:
    name: str
    offset: int
    packed_bytes: int
    size_bytes: int
    checksum: int
    method: int


def read_member(file: Readable, member: Member) -> bytes | tuple[str, str]:
    """Return the content of a member; or one of DAMAGES and a detail for the log. Raises the errors of the store."""
    head = read_range(file, member.offset, HEADER.size)
    if len(head) < HEADER.size:
        return "cut_member", "its header is cut"
    fields = HEADER.unpack(head)
    if fields[0] != HEADER_MARK:
        return "bad_header", f"no header at byte {member.offset}"
    name = read_range(file, member.offset + HEADER.size, fields[9])
    if name not in _encodings(member.name):
        return "bad_header", f"the header has the name {name!r:.80}"
    return _content(file, member, member.offset + HEADER.size + fields[9] + fields[10])


def _encodings(name: str) -> tuple[bytes, ...]:
    return name.encode("utf-8", "replace"), name.encode("cp437", "replace")


def _content(file: Readable, member: Member, start: int) -> bytes | tuple[str, str]:
    limit, content, done = member.size_bytes + 1, bytearray(), 0
    inflate = zlib.decompressobj(-zlib.MAX_WBITS) if member.method == DEFLATED else None
    while done < member.packed_bytes and len(content) < limit and not (inflate and inflate.eof):
        block = file.read_at(start + done, min(BLOCK_BYTES, member.packed_bytes - done))
        if not block:
            return "cut_member", f"the file ends at byte {start + done}"
        done += len(block)
        try:
            content += inflate.decompress(block, limit - len(content)) if inflate else block
            while inflate and inflate.unconsumed_tail and len(content) < limit:
                content += inflate.decompress(inflate.unconsumed_tail, limit - len(content))
        except zlib.error as error:
            return "bad_deflate", str(error)
    if inflate is not None and not inflate.eof and len(content) < limit:
        return "bad_deflate", "the end of its stream is missing"
    if len(content) != member.size_bytes:
        more = "more than " if len(content) >= limit else f"{len(content)} bytes in place of "
        return "wrong_size", f"{more}{member.size_bytes}"
    if zlib.crc32(content) != member.checksum:
        return "bad_checksum", f"{zlib.crc32(content):08x} in place of {member.checksum:08x}"
    return bytes(content)
