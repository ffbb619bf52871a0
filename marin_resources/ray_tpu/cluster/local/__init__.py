"""The Ray cluster of this machine (`marin cluster local up`): its head, its processes, its record.

May import `cluster.errors`; nothing else of the cluster."""
