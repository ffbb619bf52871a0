"""Small files and figures beside outputs: jobs, active attempts, progress, cost, history, collection.

May import storage.output.attempts and the packages below it. The store and the worker write them; people and plans read
them.
"""
