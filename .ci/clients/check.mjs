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

const [server, config, guests] = process.argv.slice(2);
const me = { name: "typescript-sdk", version: "1" };
const spawn = { command: server, env: { ...process.env, ZERTO_REWIND_CONFIG: config } };

const current = new Current(me, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
await current.connect(new CurrentStdio(spawn));
assert.equal(current.getNegotiatedProtocolVersion(), "2026-07-28");
await drive(current, "2026-07-28");

const older = new Older(me);
await older.connect(new OlderStdio(spawn));
await drive(older, "v1");

async function drive(client, label) {
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((t) => t.name).sort(), [
    "zerto_create_tagged_checkpoint",
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
  const refused = await call("zerto_recover_file", ask);
  assert.ok(refused.isError);
  assert.match(JSON.stringify(refused), /confirmation_required/);

  const recovered = await call("zerto_recover_file", { ...ask, confirmed: true, destination: `typescript-${label}` });
  assert.ok(!recovered.isError, JSON.stringify(recovered));
  assert.deepEqual(readFileSync(recovered.structuredContent.local_path), before);
  writeFileSync(file, before);
  await client.close();
  console.log(`ok: TypeScript SDK, protocol ${label}`);
}

function callTool(client, name, args, options) {
  const params = { name, arguments: args };
  // v1 takes a result schema in between; undefined means its own.
  return client instanceof Older ? client.callTool(params, undefined, options) : client.callTool(params, options);
}
