"""Problems of this machine's settings, and their fixes: one look a file, each by itself. `marin doctor` shows them.

It may import every other package of marin_resources; none imports it.
"""
