"""What is kept of a class besides the network: small statistical summaries, on features that never change again."""
