"""The edge: what a user passes, checked once, for functions and estimators alike."""
