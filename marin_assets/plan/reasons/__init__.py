"""The reasons of a step's new version: the fields that differ, in it or in its inputs."""
