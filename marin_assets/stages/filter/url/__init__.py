"""The family `url`: reject documents by their addresses, with the lists of RefinedWeb.

May import marin_assets.documents, marin_resources and tldextract, numpy and xxhash (inside functions).
"""
