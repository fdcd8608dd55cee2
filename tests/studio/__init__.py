"""The page of the studio, and what lies behind it."""
