"""Drives the built MCP server with the official Python SDK, in the newest protocol revision and an older one.

usage: check.py SERVER CONFIG GUESTS_DIR
The configuration points at a running simulated ZVM whose guest disks live under GUESTS_DIR.
"""

import hashlib
import sys
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters
from mcp_types import Implementation

TOOLS = [
    "zerto_create_tagged_checkpoint",
    "zerto_find_protection",
    "zerto_guard_before_mutate",
    "zerto_list_checkpoints",
    "zerto_recover_file",
]


def expect(condition: bool, what: str) -> None:
    if not condition:
        raise SystemExit(f"FAILED: {what}")


async def drive(server: str, config: str, guests: Path, mode: str, revision: str) -> None:
    target = StdioServerParameters(command=server, env={"ZERTO_REWIND_CONFIG": config})
    # No name longer than an agent's may be: it becomes part of the tag.
    me = Implementation(name="python-sdk", version="1")
    async with Client(target, mode=mode, client_info=me) as client:
        expect(client.protocol_version == revision, f"speaks {revision}, not {client.protocol_version}")

        tools = (await client.list_tools()).tools
        expect(sorted(t.name for t in tools) == TOOLS, "the five tools are listed")
        for tool in tools:
            a = tool.annotations
            hints = (a.read_only_hint, a.destructive_hint, a.idempotent_hint, a.open_world_hint)
            expect(tool.title and tool.output_schema and None not in hints, f"{tool.name} is fully described")

        found = await client.call_tool("zerto_find_protection", {"vm": "APP01"})
        expect(not found.is_error and len(found.structured_content["vpgs"]) == 3, "app01 is in three VPGs")

        missing = await client.call_tool("zerto_find_protection", {"vm": "no-such-vm"})
        expect(missing.is_error and "vm_not_found" in str(missing.structured_content), "an unknown VM has its code")

        wrong = await client.call_tool("zerto_find_protection", {"vmm": "app01"})
        expect(wrong.is_error, "a misspelt argument is a result that the model can read")

        file = guests / "jp-ubuntu" / "0" / "home" / "justin" / "app-config.yaml"
        if not file.exists():
            (file,) = (guests / "jp-ubuntu").glob("*/home/justin/app-config.yaml")
        before = file.read_bytes()

        progress: list[float] = []

        async def on_progress(done: float, total: float | None, message: str | None) -> None:
            progress.append(done)

        pinned = await client.call_tool(
            "zerto_create_tagged_checkpoint",
            {"vm": "jp-ubuntu", "action": f"edit app-config.yaml ({revision})", "change_id": "chg-412"},
            progress_callback=on_progress,
        )
        expect(not pinned.is_error, f"the checkpoint is created: {pinned.content}")
        receipt = pinned.structured_content
        expect(receipt["tag"].startswith("ai:python-sdk | edit app-config.yaml"), f"the tag names us: {receipt['tag']}")
        expect(progress and progress == sorted(progress), "progress was told, and rises")
        checkpoint = receipt["pins"][0]["checkpoint"]

        passed = await client.call_tool(
            "zerto_guard_before_mutate", {"tool": "read_file", "action": "look", "arguments": {}}
        )
        expect(passed.structured_content["decision"] == "pass_through", "an unlisted tool passes")

        file.write_bytes(b"broken by an agent\n")
        listed = await client.call_tool("zerto_list_checkpoints", {"vm": "jp-ubuntu"})
        expect(
            any(c["checkpoint"] == checkpoint for c in listed.structured_content["checkpoints"]),
            "the pin is in the journal",
        )

        ask = {"vm": "jp-ubuntu", "path": "/home/justin/app-config.yaml", "checkpoint": checkpoint}
        refused = await client.call_tool("zerto_recover_file", ask)
        expect(
            refused.is_error and "confirmation_required" in str(refused.structured_content),
            "nothing is recovered without a confirmation",
        )
        recovered = await client.call_tool(
            "zerto_recover_file", ask | {"confirmed": True, "destination": f"python-{revision}"}
        )
        expect(not recovered.is_error, f"the file is recovered: {recovered.content}")
        result = recovered.structured_content
        expect(Path(result["local_path"]).read_bytes() == before, "the recovered bytes are those before the edit")
        expect(result["files"][0]["sha256"] == hashlib.sha256(before).hexdigest(), "the hash is theirs")
        file.write_bytes(before)
    print(f"ok: Python SDK, protocol {revision}")


async def main() -> None:
    server, config, guests = sys.argv[1:]
    await drive(server, config, Path(guests), "auto", "2026-07-28")
    await drive(server, config, Path(guests), "legacy", "2025-11-25")


anyio.run(main)
