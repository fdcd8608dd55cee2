"""Long trials with a command each; the suite runs a small share of them."""
