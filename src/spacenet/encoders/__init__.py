"""Frozen pretrained networks that turn images, or other raw samples, into features before anything is learned."""
