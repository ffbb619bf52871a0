"""Values of rows as texts of a limited length, in which whatever is cut is named."""
