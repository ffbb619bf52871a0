"""The state of thousands of outputs by few requests, from the markers and packs of `storage/completion`.

May import the store.
"""
