"""The one training loop, and the files it leaves."""
