"""A light server of a Levanter model with OpenAI's completions API. Run it with `python -m`."""
