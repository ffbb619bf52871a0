"""Assets whose definition has another version than what was materialized. Those tagged "marin/cheap" are made."""

from marin_sensors.unsynced import unsynced

changed = unsynced()
