"""The words of `bucket_dag` in our vocabulary."""

from __future__ import annotations

from types import SimpleNamespace

import bucket_dag

from marin_assets import Step, output_path_of, this_output_path, versioned

OURS = SimpleNamespace(
    Step=Step,
    fn=bucket_dag.made_by_us,
    versioned=versioned,
    output_path_of=output_path_of,
    this_output_path=this_output_path,
)
