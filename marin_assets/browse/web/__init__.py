"""The protocol of the server: its door, and responses that are sent as they are written."""
