"""Documents that hold what evaluations ask, found before they are trained on."""
