"""Models to use: the estimator, the model file, export, service."""
