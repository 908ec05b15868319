// A server of 2025-11-25 on standard input and output, with a few tools.
import { writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const tools = {
  add: ({ a, b }) => a + b,
  key: () => process.env.ADDER_KEY,
  write: ({ path }) => {
    try {
      writeFileSync(path, 'x');
      return 'written';
    } catch (err) {
      return err.message;
    }
  },
};
const number = { type: 'number' };
const list = Object.keys(tools).map((name) => ({
  name,
  inputSchema: { type: 'object', properties: name === 'add' ? { a: number, b: number } : {} },
}));

const results = {
  initialize: () => ({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'adder', version: '1' } }),
  'tools/list': () => ({ tools: list }),
  'tools/call': ({ name, arguments: args }) => ({ content: [{ type: 'text', text: String(tools[name](args)) }] }),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const answer = results[method]
    ? { result: results[method](params) }
    : { error: { code: -32601, message: 'no such method' } };
  console.log(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
}
