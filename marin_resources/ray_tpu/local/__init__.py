"""The back end in the run's own process: a Ray of one machine, its start, and its end when the process dies.

May import `worker`, `environment`, `log` and the files below them; `cluster` and `slices` never import it.
"""
