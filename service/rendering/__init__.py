"""From values to HTML: templates and their filters, charts, diffs, highlighted sources, static files."""
