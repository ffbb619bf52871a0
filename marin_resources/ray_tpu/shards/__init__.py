"""Map a function over shards, in this process or as Ray tasks, and note the finished ones.

May import log, environment, ray_options, storage and wire. Imports Ray only in `connection.py` and `tasks.py`.
"""
