"""The code location of the rehearsal: the project's, and the experiments in deploy/local/experiments."""

from __future__ import annotations

import marin_assets.experiments
from local_deployment.layout import CHECKOUT

marin_assets.experiments.__path__.append(str(CHECKOUT / "deploy/local/experiments"))

from marin_assets.definitions import defs  # noqa: E402

__all__ = ["defs"]
