"""Messages to and from a worker, as JSON: configs, references to functions, tasks, outcomes.

May import the ground floor alone.
"""
