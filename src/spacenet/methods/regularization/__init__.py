"""Methods that keep one plain network and hold its weights or outputs back from changing."""
