"""WHAT outputs are: steps, stages and experiments. This file exports the API, the names that experiments use.

from marin_assets import Step, THIS_OUTPUT_PATH, executor_main, output_path_of, versioned
"""

import marin_resources  # noqa: F401 - first, as it refuses a Python that is not supported

# isort: split
from typing import TYPE_CHECKING

from marin_resources.host.imports import collection_paused

with collection_paused():  # Dagster is often loaded by now, and a visit of its objects takes as long as all this
    import marin_assets.run.exception_hook  # noqa: F401 - first, as the other imports take the first second of a script
    from marin_assets.run.entry_point import executor_main
    from marin_assets.step.expectation import Expectation, expect
    from marin_assets.step.origin import Origin
    from marin_assets.step.partitions.products import product
    from marin_assets.step.partitions.reads import partitions_of
    from marin_assets.step.partitions.sets import dynamic, static
    from marin_assets.step.partitions.windows import daily, hourly, monthly, weekly
    from marin_assets.step.step import Step
    from marin_assets.step.step_group import step_group
    from marin_assets.step.values import (
        THIS_OUTPUT_PATH,
        ConfigError,
        InputName,
        ensure_versioned,
        mirrored,
        output_path_of,
        this_output_path,
        this_partition,
        this_window,
        unwrap_versioned_value,
        versioned,
    )
    from marin_resources.hardware.resources import Resources, cpu, gpu, tpu

__all__ = [
    "THIS_OUTPUT_PATH",
    "ConfigError",
    "Expectation",
    "InputName",
    "Origin",
    "Resources",
    "Step",
    "cpu",
    "daily",
    "dynamic",
    "ensure_versioned",
    "executor_main",
    "expect",
    "gpu",
    "hourly",
    "mirrored",
    "monthly",
    "output_path_of",
    "partitions_of",
    "product",
    "static",
    "step_group",
    "this_output_path",
    "this_partition",
    "this_window",
    "tpu",
    "unwrap_versioned_value",
    "versioned",
    "weekly",
]

if TYPE_CHECKING:
    __version__: str
    """Version of the installed distribution."""
else:

    def __getattr__(name: str) -> str:
        """Read `__version__` on first use: it takes 2 ms and more, and every worker imports this module.

        For a name of Marin's that is another one here, the error is a sentence with the one here.
        """
        if name != "__version__":
            from marin_assets.step.marins_sentences import missing_name

            raise missing_name(__name__, name)
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("marin-dagster")
        except PackageNotFoundError:
            raise AttributeError(
                "The version is unknown: the distribution 'marin-dagster' is not installed. Run `make init`."
            ) from None
