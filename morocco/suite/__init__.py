"""All runs of one model or several: planned, done on lanes, resumed."""
