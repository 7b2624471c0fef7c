"""OpenAssay as an MCP server: research, search, fetch, verify and threads as tools of other programs.

tools.py has the tools, host.py what they run on, and stdio.py serves them over stdin and stdout; server/mcp.py serves
them over HTTP.
"""
