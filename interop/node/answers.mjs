// Calls tools with the TypeScript SDK's client, pinned to one revision, and
// leaves it to the SDK to answer what is asked back. Reads from standard input
// {URL, Revision, Root, Calls: [{Tool, Arguments, Answers: {method: result}}]}
// and prints a line of JSON per call: {Text, IsError, Asked: [{Method, Params}]}.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { text } from "node:stream/consumers";

const task = JSON.parse(await text(process.stdin));
const timeout = 120_000; // the machine may be busy

const client = new Client(
  { name: "interop-answers", version: "1" },
  {
    versionNegotiation: { mode: { pin: task.Revision } },
    capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } },
  },
);

let call, asked;
for (const method of ["elicitation/create", "sampling/createMessage"]) {
  client.setRequestHandler(method, ({ params }) => {
    asked.push({ Method: method, Params: params });
    const answer = call.Answers?.[method];
    if (!answer) throw new Error(`${call.Tool} asked ${method}, which nobody expects`);
    return answer;
  });
}
client.setRequestHandler("roots/list", () => ({ roots: [task.Root] }));
await client.connect(new StreamableHTTPClientTransport(new URL(task.URL)), { timeout });

for (call of task.Calls) {
  asked = [];
  let line;
  try {
    const { content, isError } = await client.callTool({ name: call.Tool, arguments: call.Arguments ?? {} }, { timeout });
    line = { Text: content.map((c) => c.text).join("\n"), IsError: isError === true };
  } catch (e) {
    line = { Text: String(e), IsError: true };
  }
  console.log(JSON.stringify({ ...line, Asked: asked }));
}
await client.close();
