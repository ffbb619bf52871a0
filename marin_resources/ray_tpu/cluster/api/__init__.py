"""The Jobs API of a Ray dashboard over HTTP: requests, responses, the token. Ray itself is not imported.

May import `cluster.errors` and `cluster.settings`; nothing else of the cluster."""
