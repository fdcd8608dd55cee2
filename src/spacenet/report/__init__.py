"""Tables, plots and pages about runs, comparisons and models."""
