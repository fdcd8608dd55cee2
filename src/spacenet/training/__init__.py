"""The training loop, one step of it, and the hardware it runs on."""
