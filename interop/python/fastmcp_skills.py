"""A server on fastmcp 4 whose resources are the skills of a folder, by its skills provider.

Its --transport is stdio or http (at /mcp). The folder has one skill, hut, which is made at the start.
"""

import argparse
import tempfile
from pathlib import Path

from fastmcp import FastMCP
from fastmcp.server.providers.skills import SkillsDirectoryProvider

flags = argparse.ArgumentParser(description=__doc__)
flags.add_argument("--transport", choices=["stdio", "http"], default="stdio")
flags.add_argument("--port", type=int, default=8000)
told = flags.parse_args()

server = FastMCP("fastmcp-skills", version="4.1.2")


@server.tool
def add(a: int, b: int) -> str:
    """Adds."""
    return f"The sum is {a + b}."


with tempfile.TemporaryDirectory() as folder:
    skill = Path(folder) / "hut"
    skill.mkdir()
    (skill / "SKILL.md").write_text("---\nname: hut\ndescription: How to build a hut.\n---\n\n# A hut\n")
    (skill / "walls.md").write_text("Four of them.\n")
    server.add_provider(SkillsDirectoryProvider(roots=Path(folder)))
    if told.transport == "stdio":
        server.run(transport="stdio", show_banner=False, log_level="ERROR")
    else:
        server.run(transport="http", host="127.0.0.1", port=told.port, show_banner=False, log_level="ERROR")
