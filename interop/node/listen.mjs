// Opens a listen stream with the TypeScript SDK's client and prints a line when
// it was acknowledged and a line when it ended:
// node listen.mjs URL REVISION URI
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [url, pin, uri] = process.argv.slice(2);
const client = new Client({ name: "interop-listen", version: "1" }, { versionNegotiation: { mode: { pin } } });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const sub = await client.listen({ toolsListChanged: true, resourceSubscriptions: [uri] });
console.log(JSON.stringify(sub.honoredFilter));
console.log(await sub.closed);
process.exit(0);
