"""Programs that run on the head of a cluster, as short jobs: what Ray's HTTP interface does not offer.

May import the API of the cluster. A program needs nothing but Ray where it runs.
"""
