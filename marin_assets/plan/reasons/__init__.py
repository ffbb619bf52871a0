"""Why a step has another version than before: the fields that differ, in it or in what it was made from."""
