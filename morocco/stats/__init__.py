"""From logs to estimates, and how far to believe them."""
