"""Methods that keep statistics of each class, on features that never change again, and compare inputs with these."""
