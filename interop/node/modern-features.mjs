// What modern-server.mjs offers: the tools, prompts and resources that the
// official conformance suite names for servers of 2025-11-25 and of 2026-07-28.
// Whoever asks does so by a result.
import { createRequestStateCodec, fromJsonSchema, inputRequired, inputResponse, McpServer, ResourceTemplate } from "@modelcontextprotocol/server";
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

// Between two messages of a tool, so that they can be told from a burst at its end.
const pause = 20;

const codec = createRequestStateCodec({ key: randomBytes(32), ttlSeconds: 600 });

const text = (s) => ({ type: "text", text: s });
const content = (...blocks) => ({ content: blocks });
const picture = { type: "image", mimeType: "image/png", data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==" };
const sound = { type: "audio", mimeType: "audio/wav", data: "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQIAAACAAA==" };
const embedded = (uri) => ({ type: "resource", resource: { uri, mimeType: "text/plain", text: "embedded text" } });

/** A question is {key, ask, read}: read returns the answer, or undefined, or throws. */
function fields(key, message, properties, required, read) {
  const requestedSchema = { type: "object", properties, ...(required.length > 0 && { required }) };
  return {
    key,
    ask: inputRequired.elicit({ message, requestedSchema }),
    read(r) {
      if (r.kind !== "elicit") return undefined;
      if (r.action !== "accept") throw new Error(`asking for ${key}: the answer is ${r.action}`);
      return read(r.content ?? {});
    },
  };
}
const form = (key, message, name, type) => fields(key, message, { [name]: { type } }, [name], (c) => (c[name] === undefined || c[name] === "" ? undefined : String(c[name])));
const everything = (message, properties) => fields("content", message, properties, [], (c) => JSON.stringify(c));
const page = (key, message, url) => ({ key, ask: inputRequired.elicitUrl({ message, url }), read: (r) => (r.kind === "elicit" ? r.action : undefined) });
const roots = (key) => ({ key, ask: inputRequired.listRoots(), read: (r) => (r.kind === "roots" ? r.roots.map((root) => root.uri).join(" ") : undefined) });
const sample = (key, prompt, maxTokens) => ({
  key,
  ask: inputRequired.createMessage({ messages: [{ role: "user", content: text(prompt) }], maxTokens }),
  read: (r) => (r.kind === "sampling" ? [r.result.content].flat()[0]?.text : undefined),
});

/**
 * converse asks in rounds, the questions of a round together. What was answered
 * in former rounds travels in requestState; with state it does from the first.
 */
async function converse(ctx, rounds, state, say) {
  const held = ctx.mcpReq.requestState();
  let { round, answers } = held ?? { round: 0, answers: {} };
  if (held || !state) {
    const got = rounds[round].map((q) => [q.key, q.read(inputResponse(ctx.mcpReq.inputResponses, q.key))]);
    if (got.every(([, answer]) => answer !== undefined)) {
      answers = { ...answers, ...Object.fromEntries(got) };
      round++;
    }
  }
  if (round === rounds.length) return say(answers);
  const requestState = state || round > 0 ? await codec.mint({ round, answers }) : undefined;
  return inputRequired({ inputRequests: Object.fromEntries(rounds[round].map((q) => [q.key, q.ask])), ...(requestState && { requestState }) });
}

/** filled makes a text of answers by a template with their keys in braces. */
const filled = (template) => (answers) => content(text(template.replace(/\{(\w+)\}/g, (_, key) => answers[key])));

const name = form("user_name", "What is your name?", "name", "string");
const capital = sample("capital_question", "What is the capital of France?", 100);
const whichRoots = roots("client_roots");
const confirm = form("confirm", "Please confirm", "ok", "boolean");

const titled = [
  { const: "value1", title: "First" },
  { const: "value2", title: "Second" },
  { const: "value3", title: "Third" },
];
const withDefaults = {
  name: { type: "string", default: "John Doe" },
  age: { type: "integer", default: 30 },
  score: { type: "number", default: 95.5 },
  status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
  verified: { type: "boolean", default: true },
};
const withChoices = {
  untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
  titledSingle: { type: "string", oneOf: titled },
  legacyEnum: { type: "string", enum: ["opt1", "opt2", "opt3"], enumNames: ["One", "Two", "Three"] },
  untitledMulti: { type: "array", items: { type: "string", enum: ["option1", "option2", "option3"] } },
  titledMulti: { type: "array", items: { anyOf: titled } },
};

const dialogs = {
  test_input_required_result_elicitation: [[[name]], false, "Hello, {user_name}!"],
  test_input_required_result_sampling: [[[capital]], false, "{capital_question}"],
  test_input_required_result_list_roots: [[[whichRoots]], false, "roots: {client_roots}"],
  test_input_required_result_request_state: [[[confirm]], true, "state-ok: {confirm}"],
  test_input_required_result_tampered_state: [[[confirm]], true, "state-ok: {confirm}"],
  test_input_required_result_multiple_inputs: [[[name, sample("greeting", "Generate a greeting", 50), whichRoots]], true, "{greeting} {user_name} has {client_roots}"],
  test_input_required_result_multi_round: [
    [[form("step1", "Step 1: What is your name?", "name", "string")], [form("step2", "Step 2: What is your favorite color?", "color", "string")]],
    true,
    "{step1} likes {step2}",
  ],
  // The SDK refuses this one with -32021 if the request declared no sampling.
  test_missing_capability: [[[capital]], false, "{capital_question}"],
  test_streaming_elicitation: [[[name]], false, "Hello, {user_name}!"],
  test_elicitation_sep1034_defaults: [[[everything("fields with defaults", withDefaults)]], false, "content={content}"],
  test_elicitation_sep1330_enums: [[[everything("fields with choices", withChoices)]], false, "content={content}"],
  visit: [[[page("consent", "Please consent", "https://example.com/consent")]], false, "consent: {consent}"],
};

async function logThrice(ctx) {
  for (const n of [1, 2, 3]) {
    await ctx.mcpReq.log("info", `message ${n} of 3`, "modern-server");
    await sleep(pause);
  }
  return content(text("logged"));
}

async function progressThrice(ctx) {
  const progressToken = ctx.mcpReq._meta?.progressToken;
  if (progressToken === undefined) return content(text("nobody asked for progress"));
  for (const progress of [0, 50, 100]) {
    await ctx.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 100, message: `${progress} of 100` } });
    await sleep(pause);
  }
  return content(text("reported"));
}

/** wait reports progress each 20 ms until its time is over or it is cancelled. */
async function wait({ ms }, ctx) {
  const progressToken = ctx.mcpReq._meta?.progressToken;
  const end = Date.now() + ms;
  for (let progress = 1; Date.now() < end; progress++) {
    await sleep(pause, undefined, { signal: ctx.mcpReq.signal });
    if (progressToken !== undefined) await ctx.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress } });
  }
  return content(text("waited"));
}

const capabilitiesOf = (ctx) => ctx.mcpReq.envelope?.["io.modelcontextprotocol/clientCapabilities"] ?? {};

/** askWhatIsDeclared asks for what the request says that the client can answer. */
function askWhatIsDeclared(ctx) {
  const can = capabilitiesOf(ctx);
  const questions = [can.elicitation && name, can.sampling && capital, can.roots && whichRoots].filter(Boolean);
  if (questions.length === 0) return content(text("there is nobody to ask"));
  return converse(ctx, [questions], false, (answers) => content(text(JSON.stringify(answers))));
}

const schema2020 = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: { address: { $anchor: "home", type: "object", properties: { street: { type: "string" }, city: { type: "string" } } } },
  properties: { name: { type: "string" }, address: { $ref: "#/$defs/address" }, by: { type: "string", enum: ["phone", "email"] }, phone: { type: "string" }, email: { type: "string" } },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { by: { const: "phone" } }, required: ["by"] },
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};
const headerSchema = {
  type: "object",
  properties: {
    region: { type: "string", "x-mcp-header": "Region" },
    count: { type: "integer", "x-mcp-header": "Count" },
    urgent: { type: "boolean", "x-mcp-header": "Urgent" },
    level: { type: "integer" },
  },
};
const strings = (...names) => ({ type: "object", properties: Object.fromEntries(names.map((n) => [n, { type: "string" }])), required: names });

/** addTools adds all tools. world is what lives longer than one request. */
function addTools(s, world) {
  const plain = (tool, run) => s.registerTool(tool, { description: "takes no arguments" }, run);
  const taking = (tool, schema, run) => s.registerTool(tool, { description: "takes arguments", inputSchema: fromJsonSchema(schema) }, run);
  const structured = (tool, schema, result) =>
    s.registerTool(tool, { description: "has structured content", outputSchema: fromJsonSchema(schema) }, () => ({ content: [], structuredContent: result }));

  for (const [tool, blocks] of Object.entries({
    test_simple_text: [text("a simple text")],
    test_image_content: [picture],
    test_audio_content: [sound],
    test_embedded_resource: [embedded("test://embedded-resource")],
    test_multiple_content_types: [text("text, an image and a resource"), picture, embedded("test://embedded-resource")],
    links: [{ type: "resource_link", uri: "test://static-text", name: "static-text" }, sound],
  })) {
    plain(tool, () => content(...blocks));
  }
  plain("test_error_handling", () => {
    throw new Error("this tool always fails");
  });
  for (const tool of ["test_tool_with_logging", "test_logging_tool"]) plain(tool, logThrice);
  plain("test_tool_with_progress", progressThrice);
  // Long enough for a bridge to begin a stream that can be taken up again.
  plain("test_reconnection", async (ctx) => {
    await sleep(1500, undefined, { signal: ctx.mcpReq.signal });
    return content(text("it took long"));
  });
  for (const [tool, [rounds, state, say]] of Object.entries(dialogs)) plain(tool, (ctx) => converse(ctx, rounds, state, filled(say)));
  plain("test_input_required_result_capabilities", askWhatIsDeclared);
  plain("test_trigger_tool_change", () => changed(world, "tools"));
  plain("test_trigger_prompt_change", () => changed(world, "prompts"));
  taking("test_sampling", strings("prompt"), ({ prompt }, ctx) => converse(ctx, [[sample("said", prompt, 100)]], false, filled("the model says: {said}")));
  taking("test_elicitation", strings("message"), ({ message }, ctx) => {
    const who = { username: { type: "string", description: "who you are" }, email: { type: "string", description: "where to reach you" } };
    return converse(ctx, [[everything(message, who)]], false, filled("content={content}"));
  });
  taking("json_schema_2020_12_tool", schema2020, (args) => content(text(JSON.stringify(args))));
  taking("test_x_mcp_header", headerSchema, (args) => content(text(JSON.stringify(args))));
  taking("wait", { type: "object", properties: { ms: { type: "integer" } }, required: ["ms"] }, wait);
  taking("change_lists", strings("kind"), ({ kind }) => changed(world, kind));
  taking("touch", { type: "object", properties: { uris: { type: "array", items: { type: "string" } } }, required: ["uris"] }, ({ uris }) => touched(world, uris));
  structured("array_output", { type: "array", items: { type: "integer" } }, [1, 2, 3]);
  structured("string_output", { type: "string" }, "just a string");
  structured("object_output", { type: "object", properties: { n: { type: "integer" } }, required: ["n"] }, { n: 1 });
  if (world.changes.tools) s.registerTool("changing_tool", { description: `version ${world.changes.tools}` }, () => content(text(`version ${world.changes.tools}`)));
}

/** changed gives an item of a list a new description, and adds it at first. */
function changed(world, kind) {
  if (!(kind in world.changes)) throw new Error(`kind is ${kind}, want tools, prompts or resources`);
  world.changes[kind]++;
  world.notify(kind);
  return content(text(`changed the ${kind}`));
}

/** touched makes a new version of each resource, and tells whoever listens. */
function touched(world, uris) {
  for (const uri of uris) {
    world.versions.set(uri, (world.versions.get(uri) ?? 1) + 1);
    world.notify(uri);
  }
  return content(text(`touched ${uris.length}`));
}

function addPrompts(s, world) {
  const messages = (...blocks) => ({ messages: blocks.map((b) => ({ role: "user", content: b })) });
  const plain = (prompt, run) => s.registerPrompt(prompt, { description: "takes no arguments" }, run);
  const taking = (prompt, names, run) => s.registerPrompt(prompt, { description: "takes arguments", argsSchema: fromJsonSchema(strings(...names)) }, run);
  plain("test_simple_prompt", () => messages(text("a simple prompt")));
  plain("test_prompt_with_image", () => messages(picture, text("mind the image")));
  taking("test_prompt_with_arguments", ["arg1", "arg2"], ({ arg1, arg2 }) => messages(text(`arg1=${arg1}, arg2=${arg2}`)));
  taking("test_prompt_with_embedded_resource", ["resourceUri"], ({ resourceUri }) => messages(embedded(resourceUri), text("mind the resource")));
  plain("test_input_required_result_prompt", (ctx) =>
    converse(ctx, [[form("user_context", "What context should the prompt use?", "context", "string")]], false, (a) => messages(text(`in the context of ${a.user_context}`))),
  );
  if (world.changes.prompts) s.registerPrompt("changing_prompt", { description: `version ${world.changes.prompts}` }, () => messages(text("changed")));
}

function addResources(s, world) {
  const contents = (uri, more) => ({ contents: [{ uri, ...more }] });
  const add = (uri, mimeType, read) => s.registerResource(uri.replace(/^\w+:\/\//, ""), uri, { mimeType }, read);
  add("test://static-text", "text/plain", (uri) => contents(uri.href, { mimeType: "text/plain", text: "the text of a resource" }));
  add("test://static-binary", "image/png", (uri) => contents(uri.href, { mimeType: "image/png", blob: picture.data }));
  for (const watched of ["test://watched-resource", "res://item/000", "res://item/001", "res://item/002"]) {
    add(watched, "text/plain", () => contents(watched, { mimeType: "text/plain", text: `version ${world.versions.get(watched) ?? 1}` }));
  }
  add("res://guarded", "text/plain", (_, ctx) => converse(ctx, [[name]], false, (a) => contents("res://guarded", { mimeType: "text/plain", text: `read by ${a.user_name}` })));
  s.registerResource("template", new ResourceTemplate("test://template/{id}/data", { list: undefined }), { mimeType: "application/json" }, (uri, { id }) =>
    contents(uri.href, { mimeType: "application/json", text: JSON.stringify({ id, templateTest: true }) }),
  );
  if (world.changes.resources) add("res://changing", "text/plain", () => contents("res://changing", { text: "changed" }));
}

const words = ["paris", "park", "party", "quay"];

/** newServer makes the server of one request, or of one pipe. */
export function newServer(world) {
  const s = new McpServer(
    { name: "modern-server", version: "1" },
    {
      instructions: "Touch a resource to see it change.",
      capabilities: { logging: {}, completions: {}, tools: { listChanged: true }, prompts: { listChanged: true }, resources: { listChanged: true, subscribe: true } },
      requestState: { verify: codec.verify },
    },
  );
  addTools(s, world);
  addPrompts(s, world);
  addResources(s, world);
  s.server.setRequestHandler("completion/complete", ({ params }) => {
    const values = words.filter((w) => w.startsWith(params.argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
  });
  return s;
}
