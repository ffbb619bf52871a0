"""`marin cluster <verb> …`: the Ray cluster of --cluster, else of MARIN_CLUSTER, and its jobs.

May import `marin_assets.cli` and `marin_resources.ray_tpu`; each verb imports the cluster's client when it runs."""

VERBS = {
    "local": "a cluster on this machine: up, down, status",
    "preempt": "kill a fake slice of the cluster on this machine, to rehearse it",
    "jobs": "the jobs of all users that run or wait",
    "logs": "the output of a job",
    "stop-job": "stop a job, and report who did to the runs that wait for it",
    "bad-hosts": "the hosts that steps avoid for a while, and to use one again",
    "auth": "put the cluster's token from Secret Manager where Ray looks for it",
    "project": "give a project of Google Cloud what the clusters need",
    "up": "bring a cluster of the catalogue up: its head, and its slices",
    "down": "take it down: slices, head and workers",
    "restart": "restart its head; its jobs end",
    "clean": "delete what is left of a cluster and belongs to nobody",
    "ssh": "a shell on the head, or on a host of a slice",
    "dashboard": "forward a cluster's dashboard to this machine",
    "render": "write infra/<name>.yaml of each cluster, for Ray's cluster launcher",
    "add-worker": "let a cluster have further slices of a TPU pod",
    "remove-worker": "let a cluster have these slices no longer",
    "status": "the head and the slices of a cluster of the catalogue",
    "monitor": "keep the slices of a cluster as they shall be",
    "submit": "run a command on the cluster, with this code",
}
"""Name of the verb, and of its file in this folder -> its description."""
