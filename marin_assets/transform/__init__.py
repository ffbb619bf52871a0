"""Raw data -> documents."""
