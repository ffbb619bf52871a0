"""A certificate for TLS on loopback, which nobody trusts."""

from __future__ import annotations

import subprocess
from pathlib import Path


def make_certificate(certificate: Path, key: Path) -> None:
    """Write both files, with openssl."""
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=m", "-days", "1"]
    command = ["openssl", "req", *kind, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
