"""Messages to people: their text, their number in an hour, and the webhook that takes them.

May import `marin_resources`; no Dagster."""
