"""OpenAssay as an MCP server: research, search, fetch, verify and threads as tools of other programs.

tools.py has the tools, stdio.py serves them over stdin and stdout, and server/mcp.py over HTTP.
"""
