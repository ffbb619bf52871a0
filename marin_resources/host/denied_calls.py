"""The filter of system calls of a sandbox, as the kernel's bytes (seccomp, classic BPF).

A program may have threads, and no process of its own: limits of CPU time and memory are those of a process, and root's
processes are not limited in number. Refused too are calls that reach beyond the sandbox's namespaces, or hold memory
that no limit counts.
https://docs.kernel.org/userspace-api/seccomp_filter.html
"""

from __future__ import annotations

import errno
import struct

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The kernel's numbers of the machines, by the names of `os.uname().machine`."""
CLONE = {"x86_64": 56, "aarch64": 220}
CLONE3 = 435
"""Without it, the C library makes threads by clone. The flags of clone3 are in memory, which a filter cannot read."""
THREAD = 0x10000
"""The flag of clone for a thread."""
X32 = 0x40000000
"""Added to the numbers of x86_64's second set of calls."""
DENIED = {
    "fork": (57, None),
    "vfork": (58, None),
    "unshare": (272, 97),
    "setns": (308, 268),
    "shmget": (29, 194),
    "ptrace": (101, 117),
    "pidfd_getfd": (438, 438),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
}
"""Numbers of the calls, on x86_64 and aarch64."""

LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, ERROR = 0x7FFF0000, 0x00050000
NUMBER_AT, ARCHITECTURE_AT, FLAGS_AT = 0, 4, 16
"""Offsets in the kernel's `seccomp_data`."""


def filter_of(machine: str) -> bytes | None:
    """Return the filter for a machine, None for one whose numbers of calls are not listed."""
    if machine not in ARCHITECTURES:
        return None
    numbers = [numbers[machine == "aarch64"] for numbers in DENIED.values()]
    denied = [number for number in numbers if number is not None]
    ends = {"allow": ALLOW, "deny": ERROR | errno.EPERM, "missing": ERROR | errno.ENOSYS}
    # (code, value, end if true, end if false); None: the next line
    lines: list[tuple[int, int, str | None, str | None]] = [
        (LOAD, ARCHITECTURE_AT, None, None),
        (EQUAL, ARCHITECTURES[machine], None, "deny"),
        (LOAD, NUMBER_AT, None, None),
        (AT_LEAST, X32, "deny", None),
        (EQUAL, CLONE3, "missing", None),
        *((EQUAL, number, "deny", None) for number in denied),
        (EQUAL, CLONE[machine], None, "allow"),
        (LOAD, FLAGS_AT, None, None),
        (ANY_BIT, THREAD, "allow", "deny"),
    ]
    place = {end: len(lines) + index for index, end in enumerate(ends)}
    jumps = [
        (code, *(place[end] - index - 1 if end else 0 for end in (true, false)), value)
        for index, (code, value, true, false) in enumerate(lines)
    ]
    return b"".join(struct.pack("HBBI", *line) for line in [*jumps, *((RETURN, 0, 0, of) for of in ends.values())])
