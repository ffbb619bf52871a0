"""Load the code location as Dagster does, in a process of its own: `marin_assets.definitions`, with Dagster's checks.

In:  the environment and the import path of this process.
Out: the experiments, and a sentence for each file that is left out and for each experiment that Dagster refuses.

A file may take its whole process down when it is imported. Then the sentence has how the process ended.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass

BEGIN = "=== the code location ==="
"""Line before the JSON: an experiment may print."""
TIMEOUT_S = 50.0
"""Less than the doctor's limit for a look. A code location takes some seconds."""
SETTING_IS_WRONG = 2
"""Exit code of a process that has printed a sentence about a setting."""


@dataclass(frozen=True, kw_only=True)
class Loaded:
    experiments: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """A sentence for each file of experiments, or of sensors, that is left out."""
    refused: tuple[str, ...] = ()
    """A sentence for each experiment that takes the code location down."""


def load_definitions(timeout_s: float = TIMEOUT_S) -> Loaded:
    """Load the code location. A load that fails is `refused`."""
    # late, for its weight: it loads Dagster
    from marin_assets.assets.load_errors import VALIDATION_VARIABLE

    environment = {name: value for name, value in os.environ.items() if name != VALIDATION_VARIABLE}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    try:
        ended = subprocess.run(
            [sys.executable, "-m", __name__],
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Loaded(refused=(f"The code location does not load within {timeout_s:g} s. Import less at the top.",))
    _, begin, text = ended.stdout.rpartition(f"{BEGIN}\n")
    if not begin:
        last = (ended.stderr.strip().splitlines() or ["nothing is printed"])[-1]
        if ended.returncode == SETTING_IS_WRONG:
            return Loaded(refused=(last,))
        how = f"by signal {-ended.returncode}" if ended.returncode < 0 else f"with code {ended.returncode}"
        return Loaded(
            refused=(f"The process that loads the code location ended {how}: {last}. Correct the file that ends it.",)
        )
    return Loaded(**{name: tuple(values) for name, values in json.loads(text).items()})


def _load() -> Loaded:
    import dagster as dg

    try:
        definitions = importlib.import_module("marin_assets.definitions")
        dg.Definitions.validate_loadable(definitions.defs)
    except Exception as error:  # of Dagster's checks, or of an experiment's code
        return _load_one_by_one(error)
    deployed = definitions.deployed.left_out.values()
    return Loaded(
        experiments=tuple(definitions.experiments.steps),
        left_out=(*definitions.experiments.left_out.values(), *deployed),
    )


def _load_one_by_one(error: Exception) -> Loaded:
    """The experiments that Dagster refuses also alone; if it refuses none alone, the error of all."""
    import dagster as dg

    from marin_assets.assets.assemble import assemble
    from marin_assets.catalog.experiments_folder import Experiments, load_experiments

    loaded = load_experiments()
    refused = []
    for name, steps in loaded.steps.items():
        try:
            dg.Definitions.validate_loadable(assemble(Experiments({name: steps}, {})))
        except Exception as own:  # as above
            refused.append(f"Experiment {name!r} takes the code location down: {type(own).__name__}: {own}")
    everything = f"The code location does not load: {type(error).__name__}: {error}"
    return Loaded(
        experiments=tuple(loaded.steps),
        left_out=tuple(loaded.left_out.values()),
        refused=tuple(refused) or (everything,),
    )


if __name__ == "__main__":
    sys.stdout.write(f"\n{BEGIN}\n{json.dumps(asdict(_load()))}\n")
