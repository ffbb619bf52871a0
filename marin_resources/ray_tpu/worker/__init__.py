"""The worker: claim an output, call the step's function, publish; and end the process on a stop or a time-out.

May import shards, log, environment, storage and wire.
"""
