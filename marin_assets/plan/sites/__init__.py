"""The cluster of a fleet that computes each step of a plan, and the data that have to move there first."""
