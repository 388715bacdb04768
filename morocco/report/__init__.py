"""Several models side by side: tables, a chart, a page."""
