"""The quickstart, computed again each morning at a tiny scale: can it still be? Off until it is switched on."""

from marin_sensors.canary import canary

every_morning = canary()
