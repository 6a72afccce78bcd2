"""For coding agents: the MCP server on standard input and output, and the skill folder."""
