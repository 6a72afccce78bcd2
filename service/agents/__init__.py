"""The tools of coding agents: an MCP server inside the API, with its keys, quotas and rates."""
