"""The jobs of a cluster across its restart: backed up before, submitted again after it."""
