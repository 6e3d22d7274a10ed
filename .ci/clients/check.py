"""Drives the built MCP server with the official Python SDK, in the newest protocol revision and an older one.

usage: check.py SERVER CONFIG GUESTS_DIR
The configuration points at a running simulated ZVM whose guest disks live under GUESTS_DIR.
"""

import hashlib
import os
import pty
import subprocess
import sys
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult, Implementation

TOOLS = [
    "zerto_create_tagged_checkpoint",
    "zerto_diff_file",
    "zerto_find_protection",
    "zerto_guard_before_mutate",
    "zerto_list_checkpoints",
    "zerto_recover_file",
]


def expect(condition: bool, what: str) -> None:
    if not condition:
        raise SystemExit(f"FAILED: {what}")


def approve(server: str, config: str, plan: str) -> None:
    """A person at a terminal, who reads the question and says yes."""
    ours, theirs = pty.openpty()
    command = [str(Path(server).with_name("zerto-rewind")), "--config", config, "approve", plan]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as person:
        os.close(theirs)
        shown = b""
        while b"Approve this? [y/N]" not in shown:
            shown += os.read(ours, 4096)
        os.write(ours, b"y\n")
        expect(person.wait(60) == 0, f"the plan is approved: {shown.decode()}")
    os.close(ours)


async def forms(target: StdioServerParameters, mode: str, ask: dict, content: dict | None) -> tuple[object, list[str]]:
    """A recovery with a client that fills forms in with this; and what they said."""
    said: list[str] = []

    async def fill_in(context: object, params: object) -> ElicitResult:
        said.append(params.message)
        schema = params.requested_schema
        expect(schema["required"] == ["vm_name"] and "default" not in str(schema), f"one field, empty: {schema}")
        return ElicitResult(action="accept", content=content)

    me = Implementation(name="python-sdk", version="1")
    async with Client(target, mode=mode, client_info=me, elicitation_callback=fill_in) as client:
        return await client.call_tool("zerto_recover_file", ask), said


async def drive(server: str, config: str, guests: Path, mode: str, revision: str) -> None:
    target = StdioServerParameters(command=server, env={"ZERTO_REWIND_CONFIG": config})
    # No name longer than an agent's may be: it becomes part of the tag.
    me = Implementation(name="python-sdk", version="1")
    async with Client(target, mode=mode, client_info=me) as client:
        expect(client.protocol_version == revision, f"speaks {revision}, not {client.protocol_version}")

        tools = (await client.list_tools()).tools
        expect(sorted(t.name for t in tools) == TOOLS, "the six tools are listed")
        for tool in tools:
            a = tool.annotations
            hints = (a.read_only_hint, a.destructive_hint, a.idempotent_hint, a.open_world_hint)
            expect(tool.title and tool.output_schema and None not in hints, f"{tool.name} is fully described")
            needs_person = (tool.meta or {}).get("anthropic/requiresUserInteraction", False)
            expect(needs_person == (tool.name == "zerto_recover_file"), f"{tool.name} says whether it asks a person")

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
        plans = set()
        for _ in range(9):
            refused = await client.call_tool("zerto_recover_file", ask | {"confirmed": True})
            error = (refused.structured_content or {}).get("error", {})
            expect(refused.is_error and error["code"] == "confirmation_required", "the model's word decides nothing")
            plans.add(error["plan_id"])
        expect(len(plans) == 1, f"one plan waits, not nine: {plans}")
        (plan,) = plans

        for content in ({}, {"vm_name": ""}, {"confirmed": True}, None):
            answered, said = await forms(target, mode, ask, content)
            expect(len(said) == 1 and "/home/justin/app-config.yaml" in said[0], f"the form says what it is about: {said}")
            error = (answered.structured_content or {}).get("error", {})
            expect(answered.is_error and error["code"] == "declined", f"a form with {content} agrees to nothing: {error}")

        def check(recovered: object) -> None:
            expect(not recovered.is_error, f"the file is recovered: {recovered.content}")
            result = recovered.structured_content
            expect(Path(result["local_path"]).read_bytes() == before, "the recovered bytes are those before the edit")
            expect(result["files"][0]["sha256"] == hashlib.sha256(before).hexdigest(), "the hash is theirs")

        by_form = ask | {"destination": f"python-form-{revision}"}
        recovered, said = await forms(target, mode, by_form, {"vm_name": "jp-ubuntu"})
        expect(len(said) == 1, "asked once")
        check(recovered)
        several = ask | {"paths": ["/etc/host*"], "destination": f"python-several-{revision}"}
        del several["path"]
        recovered, said = await forms(target, mode, several, {"vm_name": "jp-ubuntu"})
        expect(len(said) == 2 and "/etc/hostname" in said[1], f"a look, and then what was found: {said}")
        outcomes = [path["outcome"] for path in recovered.structured_content["paths"]]
        expect(outcomes == ["placed", "placed"], f"both are placed: {recovered.structured_content}")

        await anyio.to_thread.run_sync(approve, server, config, plan)
        altered = await client.call_tool("zerto_recover_file", ask | {"path": "/etc/shadow", "plan_id": plan})
        expect("plan_altered" in str(altered.structured_content), "a plan is for its own arguments")
        check(await client.call_tool("zerto_recover_file", ask | {"plan_id": plan}))
        again = await client.call_tool("zerto_recover_file", {"plan_id": plan})
        expect("plan_used" in str(again.structured_content), "a plan is carried out once")
        file.write_bytes(before)
    print(f"ok: Python SDK, protocol {revision}")


async def main() -> None:
    server, config, guests = sys.argv[1:]
    await drive(server, config, Path(guests), "auto", "2026-07-28")
    await drive(server, config, Path(guests), "legacy", "2025-11-25")


anyio.run(main)
