"""`python -m local_deployment up [--port 8080] [--home FOLDER] [--experiments FOLDER]`, and `down`."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from local_deployment.layout import CHECKOUT, EXPERIMENTS, DeploymentError
from local_deployment.lifecycle import down, up

LOGINS = """\
The deployment is up at {url}, and its data are shown at {browse}
  log in     as ada, who operates, as bob, who reads, or as anyone else, who may do nothing; any password is right
  look       .venv/bin/supervisorctl -c {supervisor} status
  its logs   {logs}
  remove it  make deploy-local-down"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="local_deployment", description="The whole deployment, on loopback.")
    parser.add_argument("verb", choices=("up", "down"))
    parser.add_argument("--port", type=int, default=8080, help="of the proxy")
    parser.add_argument("--home", type=Path, default=CHECKOUT / ".deploy", help="where all of it is")
    parser.add_argument("--experiments", type=Path, default=EXPERIMENTS, help="a folder of further experiments")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    home = options.home.absolute()
    try:
        message = (
            _bring_up(home, options.port, options.experiments.absolute()) if options.verb == "up" else _remove(home)
        )
    except DeploymentError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{message}\n")
    return 0


def _bring_up(home: Path, port: int, experiments: Path) -> str:
    if not experiments.is_dir():
        raise DeploymentError(f"--experiments is {str(experiments)!r}, which is no folder.")
    layout = up(home, port, experiments)
    return LOGINS.format(
        url=layout.url, browse=layout.browse_url, supervisor=layout.supervisor, logs=layout.home / "logs"
    )


def _remove(home: Path) -> str:
    if not down(home):
        return f"No deployment is in {str(home)!r}."
    return "The deployment and all of its data are removed."


if __name__ == "__main__":
    sys.exit(main())
