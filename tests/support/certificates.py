"""A certificate for TLS on loopback, which nobody trusts."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path


def make_certificate(certificate: Path, key: Path, *, names: Sequence[str] = ()) -> None:
    """Write both files, with openssl: for these names of hosts, which may begin with "*."."""
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=m", "-days", "1"]
    if names:
        kind += ["-addext", f"subjectAltName={','.join(f'DNS:{name}' for name in names)}"]
    command = ["openssl", "req", *kind, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
