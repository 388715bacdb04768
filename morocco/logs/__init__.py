"""Logs and run records: written by one run, found and read again by all commands."""
