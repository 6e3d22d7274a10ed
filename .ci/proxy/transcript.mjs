// Holds a conversation with an MCP server through the official TypeScript SDKs (the current one in the newest protocol
// revision, the older one in its own) and prints what came of it. Run direct and through a proxy, it has to print the same.
//
// usage: node transcript.mjs COMMAND ARGS...     over stdio
//        node transcript.mjs http://...          over streamable HTTP
//
// Receipts are left out, and so is progress without a total: a guarded call differs in these alone.
import assert from "node:assert/strict";
import { Client as Current, StreamableHTTPClientTransport as CurrentHttp } from "@modelcontextprotocol/client";
import { StdioClientTransport as CurrentStdio } from "@modelcontextprotocol/client/stdio";
import { Client as Older } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OlderStdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as OlderHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const RECEIPT = "io.github.zerto-rewind/receipt";
const [command, ...args] = process.argv.slice(2);
const transport = (Stdio, Http) =>
  command.startsWith("http") ? new Http(new URL(command)) : new Stdio({ command, args, env: process.env });
const me = { name: "transcript", version: "1" };
const asked = [];
const elicited = (request) => {
  asked.push(request.params.message);
  const values = { string: "s", integer: 1, number: 1.5, boolean: true };
  const entries = Object.entries(request.params.requestedSchema.properties);
  const content = Object.fromEntries(entries.map(([name, p]) => [name, p.enum ? p.enum[0] : values[p.type]]));
  return { action: "accept", content };
};

const current = new Current(me, {
  capabilities: { elicitation: {} },
  versionNegotiation: { mode: { pin: "2026-07-28" } },
});
current.setRequestHandler("elicitation/create", elicited);
await current.connect(transport(CurrentStdio, CurrentHttp));
await drive(current, ["test_input_required_result_elicitation", "test_input_required_result_multi_round"]);

const older = new Older(me, { capabilities: { elicitation: {} } });
older.setRequestHandler(ElicitRequestSchema, elicited);
await older.connect(transport(OlderStdio, OlderHttp));
await drive(older, ["test_elicitation_sep1034_defaults", "test_tool_with_logging"]);

async function drive(client, more) {
  const call = async (name, options) => {
    const params = { name, arguments: {} };
    try {
      // The older one takes a result schema in between; undefined means its own.
      const result = await (client instanceof Older
        ? client.callTool(params, undefined, options)
        : client.callTool(params, options));
      say(name, result);
    } catch (error) {
      say(name, { error: error.message });
    }
  };
  say("server", client.getServerVersion());
  say("tools", await client.listTools());
  say("prompts", await client.listPrompts());
  say("resources", await client.listResources());
  say("resource", await client.readResource({ uri: "test://static-binary" }));
  say("prompt", await client.getPrompt({ name: "test_prompt_with_image" }));
  for (const name of ["test_simple_text", "test_multiple_content_types", "test_error_handling", "no_such_tool", ...more]) {
    await call(name);
  }
  const told = [];
  await call("test_tool_with_progress", { onprogress: (progress) => told.push(progress) });
  told.reduce((last, { progress }) => (assert.ok(progress > last, JSON.stringify(told)), progress), -1);
  const own = told.filter(({ total }) => total !== undefined);
  say("progress", own.map(({ progress, total }) => [progress - own[0].progress, total - own[0].progress]));
  const abort = new AbortController();
  setTimeout(() => abort.abort("enough"), 300);
  await call("test_cancellation", { signal: abort.signal });
  await call("test_simple_text");
  say("asked", asked);
  await client.close();
}

function say(what, value) {
  if (value?._meta) {
    const { [RECEIPT]: _, ...meta } = value._meta;
    value = { ...value, _meta: Object.keys(meta).length ? meta : undefined };
  }
  console.log(what, JSON.stringify(value));
}
