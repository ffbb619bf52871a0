"""The usage of outputs: the attempts that held devices or read from other regions, and their device hours.

May import the rest of marin_resources.storage.
"""
