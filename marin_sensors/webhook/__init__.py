"""Messages to people: what one says, how many are sent, and the webhook that takes them.

May import `marin_resources`; no Dagster."""
