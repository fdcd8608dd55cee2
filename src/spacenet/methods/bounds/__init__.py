"""What is reached without any method, and with all data at once."""
