"""`marin cluster <verb> …`: the Ray cluster that steps run on, and what runs there.

Which one: --cluster, else MARIN_CLUSTER; a dashboard's URL, or `local` for the one of `marin cluster local up`.
"""

VERBS = {
    "local": "a cluster on this machine: up, down, status",
    "jobs": "what runs and waits there, of everybody",
    "logs": "what a job printed",
    "stop-job": "end a job, and tell the runs that wait for it who did",
    "submit": "run a command there, with this code",
}
"""Name of the verb, and of its file in this folder -> what it does."""
