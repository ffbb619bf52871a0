"""Where the steps of a plan are computed, of several clusters, and what has to move there first."""
