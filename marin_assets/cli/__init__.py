"""The command `marin`: one file for each verb, and what the verbs share."""
