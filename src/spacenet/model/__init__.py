"""A trained model: prediction, further learning, the file format, the scikit-learn estimator and export."""
