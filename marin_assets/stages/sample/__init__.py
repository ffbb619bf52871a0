"""Documents divided, sampled, shuffled and counted: every choice is a hash of a name, none depends on shards."""
