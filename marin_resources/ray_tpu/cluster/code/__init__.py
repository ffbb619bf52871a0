"""The code and the Python of a job: the package of the working directory, or the image's code.

May import `cluster.api` and `cluster.settings`; nothing else of the cluster."""
