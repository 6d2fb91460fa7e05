"""Files of rows: reading them, answering them, measuring answers against labels, fitting calibrations, reports."""
