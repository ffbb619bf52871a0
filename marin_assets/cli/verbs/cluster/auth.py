"""Put the token of a cluster from Google's Secret Manager into the file in which Ray looks for one.

The file is RAY_AUTH_TOKEN_PATH, else ~/.ray/auth_token, and for its owner alone. The secret is that of the cluster in
infra/clusters.toml, else of --secret, else of MARIN_CLUSTER_TOKEN_SECRET. The nodes of a cluster do it when they start.
"""

from __future__ import annotations

import argparse
import os

from marin_assets.run.options import OptionError
from marin_assets.run.output import print_line, print_stderr

VARIABLE = "MARIN_CLUSTER_TOKEN_SECRET"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cluster", nargs="?", help="its name in infra/clusters.toml")
    parser.add_argument("--secret", metavar="RESOURCE", help="projects/PROJECT/secrets/NAME")


def run(options: argparse.Namespace) -> int:
    # late, for their weight
    from marin_resources.ray_tpu.cluster.api.token import TokenError, default_token_path, token_of_secret

    path = default_token_path()
    try:
        token_of_secret(_secret(options)).write(path)
    except TokenError as error:
        print_stderr(str(error))
        return 1
    print_line(f"wrote the token to {path}. Ray sends it with RAY_AUTH_MODE=token")
    return 0


def _secret(options: argparse.Namespace) -> str:
    from marin_resources.clusters.catalogue import find_cluster

    if options.cluster is not None and options.secret is not None:
        raise OptionError("marin cluster auth: got a cluster and --secret, expected one of them.")
    secret = options.secret or os.environ.get(VARIABLE, "").strip()
    if options.cluster is not None:
        secret = find_cluster(options.cluster).token_resource
    parts = secret.split("/")
    if not secret:
        raise OptionError(f"marin cluster auth: got no secret. Name the cluster, or pass --secret, or set {VARIABLE}.")
    if len(parts) not in (4, 6) or parts[0] != "projects" or parts[2] != "secrets" or not all(parts):
        raise OptionError(f"marin cluster auth: the secret is {secret!r}, expected projects/PROJECT/secrets/NAME.")
    return secret
