"""The dashboard: server-rendered pages, small ES modules, every asset our own, no build step."""
