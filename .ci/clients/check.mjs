// Drives the built MCP server with the official TypeScript SDKs: the current one in the newest protocol
// revision, the older one (v1) in the revision that it speaks.
//
// usage: node check.mjs SERVER CONFIG GUESTS_DIR
import assert from "node:assert/strict";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client as Current } from "@modelcontextprotocol/client";
import { StdioClientTransport as CurrentStdio } from "@modelcontextprotocol/client/stdio";
import { Client as Older } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OlderStdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [server, config, guests] = process.argv.slice(2);
const me = { name: "typescript-sdk", version: "1" };
const spawn = { command: server, env: { ...process.env, ZERTO_REWIND_CONFIG: config } };

// Without a way to fill in forms a client shows none.
async function connectCurrent(fillIn) {
  const capabilities = fillIn ? { elicitation: { form: {} } } : {};
  const client = new Current(me, { capabilities, versionNegotiation: { mode: { pin: "2026-07-28" } } });
  if (fillIn) client.setRequestHandler("elicitation/create", fillIn);
  await client.connect(new CurrentStdio(spawn));
  assert.equal(client.getNegotiatedProtocolVersion(), "2026-07-28");
  return client;
}

async function connectOlder(fillIn) {
  // As far as a client can go in answering by itself.
  const capabilities = fillIn ? { elicitation: { form: { applyDefaults: true } } } : {};
  const client = new Older(me, { capabilities });
  if (fillIn) client.setRequestHandler(ElicitRequestSchema, fillIn);
  await client.connect(new OlderStdio(spawn));
  return client;
}

await drive(connectCurrent, "2026-07-28");
await drive(connectOlder, "v1");

async function drive(connect, label) {
  const client = await connect();
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((t) => t.name).sort(), [
    "zerto_create_tagged_checkpoint",
    "zerto_diff_file",
    "zerto_find_protection",
    "zerto_guard_before_mutate",
    "zerto_list_checkpoints",
    "zerto_recover_file",
  ]);
  const call = (name, args, options) => callTool(client, name, args, options);

  const found = await call("zerto_find_protection", { vm: "app01" });
  assert.equal(found.structuredContent.vpgs.length, 3);

  const unprotected = await call("zerto_find_protection", { vm: "lonely" });
  assert.ok(unprotected.isError);
  assert.match(JSON.stringify(unprotected), /vm_not_protected/);

  const disk = join(guests, "jp-ubuntu");
  const file = join(disk, readdirSync(disk)[0], "home/justin/app-config.yaml");
  const before = readFileSync(file);

  let told = 0;
  const pinned = await call(
    "zerto_create_tagged_checkpoint",
    { vm: "jp-ubuntu", action: `edit app-config.yaml (${label})` },
    { onprogress: () => (told += 1) },
  );
  assert.ok(!pinned.isError, JSON.stringify(pinned));
  assert.match(pinned.structuredContent.tag, /^ai:typescript-sdk \| edit app-config\.yaml/);
  assert.ok(told > 0, "progress was told");
  const { checkpoint } = pinned.structuredContent.pins[0];

  writeFileSync(file, "broken by an agent\n");
  const ask = { vm: "jp-ubuntu", path: "/home/justin/app-config.yaml", checkpoint };
  const plans = new Set();
  for (let time = 0; time < 9; time += 1) {
    const refused = await call("zerto_recover_file", { ...ask, confirmed: true });
    assert.ok(refused.isError);
    assert.equal(refused.structuredContent.error.code, "confirmation_required");
    plans.add(refused.structuredContent.error.plan_id);
  }
  assert.equal(plans.size, 1, "one plan waits, not nine");

  for (const content of [{}, { vm_name: "" }, { confirmed: true }]) {
    const { answer, said } = await withForm(connect, ask, content);
    assert.equal(said.length, 1);
    assert.match(said[0], /app-config\.yaml/);
    assert.ok(answer.isError, JSON.stringify(answer));
    assert.equal(answer.structuredContent.error.code, "declined");
  }

  const byForm = { ...ask, destination: `typescript-${label}` };
  const { answer: recovered } = await withForm(connect, byForm, { vm_name: "jp-ubuntu" });
  assert.ok(!recovered.isError, JSON.stringify(recovered));
  assert.deepEqual(readFileSync(recovered.structuredContent.local_path), before);
  writeFileSync(file, before);
  await client.close();
  console.log(`ok: TypeScript SDK, protocol ${label}`);
}

// A recovery with a client of its own that fills forms in with this.
async function withForm(connect, ask, content) {
  const said = [];
  const client = await connect(async ({ params }) => {
    said.push(params.message);
    assert.deepEqual(params.requestedSchema.required, ["vm_name"]);
    return { action: "accept", content };
  });
  const answer = await callTool(client, "zerto_recover_file", ask);
  await client.close();
  return { answer, said };
}

function callTool(client, name, args, options) {
  const params = { name, arguments: args };
  // v1 takes a result schema in between; undefined means its own.
  return client instanceof Older ? client.callTool(params, undefined, options) : client.callTool(params, options);
}
