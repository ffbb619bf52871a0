"""Token caches to a language model, by Levanter."""
