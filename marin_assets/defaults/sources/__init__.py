"""Default steps of sources: hubs, crawls, dumps and archives.

May import `data` of the folder above, stages, step and marin_resources."""
