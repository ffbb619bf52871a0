"""The code location `marin`: the only file where assets, resources and sensors meet.

Every file in `experiments/` with a function `steps()` is an experiment. An experiment that does not import, or whose
steps clash with another's, is left out with a sentence in the log; the code location loads without it.
"""

from __future__ import annotations

from marin_resources.host.imports import collection_paused

with collection_paused():  # all of it lives as long as the process
    from marin_assets.assets.assemble import assemble, graph_of
    from marin_assets.assets.factory import asset_key
    from marin_assets.catalog.experiments_folder import load_experiments
    from marin_sensors.load import load_deployed

    experiments = load_experiments()
    _graph = graph_of(experiments)
    deployed = load_deployed({asset_key(node) for node in _graph})
    defs = assemble(experiments, deployed.sensors, deployed.schedules, deployed.left_out, deployed.assets, graph=_graph)
