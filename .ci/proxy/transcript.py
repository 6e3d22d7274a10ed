"""Holds a conversation with an MCP server through the official Python SDK, in the newest protocol revision and an older
one, and prints what came of it. Run direct and through a proxy, it has to print the same.

usage: transcript.py COMMAND ARGS...        over stdio
       transcript.py http://...             over streamable HTTP

Receipts are left out, and so is progress without a total: a guarded call differs in these alone.
"""

import json
import sys

import anyio
from mcp import Client, StdioServerParameters
from mcp_types import CreateMessageResult, ElicitResult, Implementation, TextContent

RECEIPT = "io.github.zerto-rewind/receipt"
PLAIN = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "no_such_tool",
]
LEGACY = ["test_elicitation_sep1034_defaults", "test_tool_with_logging"]
MODERN = [
    "test_input_required_result_elicitation",
    "test_input_required_result_request_state",
    "test_input_required_result_multi_round",
    "test_input_required_result_sampling",
]


def say(what: str, value: object) -> None:
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json", by_alias=True)
    if isinstance(value, dict) and isinstance(value.get("_meta"), dict):
        value["_meta"].pop(RECEIPT, None)
        value["_meta"] = value["_meta"] or None
    print(what, json.dumps(value, sort_keys=True))


async def drive(target: object, mode: str) -> None:
    asked: list[str] = []

    async def elicit(context: object, params: object) -> ElicitResult:
        asked.append(params.message)
        properties = params.requested_schema["properties"]
        values = {"string": "s", "integer": 1, "number": 1.5, "boolean": True}
        content = {name: values[p["type"]] if not p.get("enum") else p["enum"][0] for name, p in properties.items()}
        return ElicitResult(action="accept", content=content)

    async def sample(context: object, params: object) -> CreateMessageResult:
        asked.append("sampling")
        return CreateMessageResult(role="assistant", model="m", content=TextContent(type="text", text="Paris"))

    logged: list[object] = []

    async def log(params: object) -> None:
        logged.append(params.data)

    async with Client(
        target,
        mode=mode,
        client_info=Implementation(name="transcript", version="1"),
        elicitation_callback=elicit,
        sampling_callback=sample,
        logging_callback=log,
        read_timeout_seconds=30,
    ) as client:
        say("server", {"name": client.server_info.name, "version": client.protocol_version})
        say("tools", await client.list_tools())
        say("prompts", await client.list_prompts())
        say("resources", await client.list_resources())
        say("resource", await client.read_resource("test://template/7/data"))
        say("prompt", await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"}))

        async def call(name: str, arguments: dict | None = None, **options: object) -> None:
            try:
                say(name, await client.call_tool(name, arguments or {}, **options))
            except Exception as error:  # what the SDK makes of a protocol error is a part of the transcript
                say(name, {"error": str(error)})

        for name in PLAIN + (LEGACY if mode == "legacy" else MODERN):
            await call(name)
        if mode == "legacy":
            await call("test_sampling", {"prompt": "say"})

        told: list[tuple[float, float | None]] = []

        async def on_progress(done: float, total: float | None, message: str | None) -> None:
            told.append((done, total))

        await call("test_tool_with_progress", progress_callback=on_progress)
        values = [done for done, _ in told]
        assert values == sorted(set(values)), f"progress does not rise: {values}"
        own = [(done, total) for done, total in told if total is not None]
        say("progress", [[done - own[0][0], total - own[0][0]] for done, total in own])

        with anyio.move_on_after(0.3):
            await client.call_tool("test_cancellation", {})
        await call("test_simple_text")
        say("asked", asked)
        say("logged", logged)


async def main() -> None:
    first, *rest = sys.argv[1:]
    target = first if first.startswith("http") else StdioServerParameters(command=first, args=rest)
    for mode in ["auto", "legacy"]:
        await drive(target, mode)


anyio.run(main)
