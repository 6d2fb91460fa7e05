"""Running a model over files: answering rows, measuring against labels, fitting calibrations, reports."""
