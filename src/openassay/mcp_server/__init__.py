"""OpenAssay as an MCP server: research, search, fetch, verify and threads as tools of other programs.

    house.py      what the tools work in: a person's own machine, or a server with many people
    tools.py      the tools, as a program sees them
    asking.py     research and threads
    looking.py    search and fetch
    checking.py   verify
    stdio.py      a program of one's own, over stdin and stdout

Over HTTP the door is server/mcp_door.py.
"""
