"""One file per figure of the paper: each reads a CSV of results/ and draws."""
