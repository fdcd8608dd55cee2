"""The command line: one file per command, each a thin layer over the Python API."""
