"""An MCP server made of PyPI's package mcp: on standard input and output, or on the port that is its argument."""

import sys

from mcp.server import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("counter", log_level="ERROR")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def divide(a: int, b: int) -> float:
    """Divides two numbers."""
    if b == 0:
        raise ValueError("division by zero")
    return a / b


if len(sys.argv) > 1:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run()
