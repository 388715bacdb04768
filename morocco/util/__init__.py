"""Units, text, files and JSON: what every wing needs and no other library has."""
