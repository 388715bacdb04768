"""Units, text, files, JSON and option types, for every wing."""
