"""Run tasks with Ray: the back ends, the process that computes a task, and the shards that a step maps.

May import storage, drift, wire and the ground floor. Layers: job and local; cluster; worker; shards; log, environment.
"""
