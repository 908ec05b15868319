// Package gateway is a gateway between two eras of the Model Context Protocol: it serves
// MCP servers of any revision to MCP clients of any revision.
//
// Revisions up to 2025-11-25 have sessions, opened by initialize; here they are called
// legacy. Revision 2026-07-28 and later have none; here they are called modern. A
// [Gateway] translates where a client and its server differ, change notifications, and
// questions to the user included.
//
//	g, err := gateway.New(gateway.Options{Servers: []gateway.ServerOptions{
//		{Name: "docs", URL: "https://docs.example.com/mcp"},
//		{Name: "files", Command: []string{"npx", "-y", "@modelcontextprotocol/server-filesystem", "/srv"}},
//	}})
//	if err != nil {
//		return err
//	}
//	http.ListenAndServe("127.0.0.1:2526", g)
//
// Each server has an endpoint /mcp/NAME, and /sse/NAME for clients that have only the
// HTTP+SSE transport. Several gateways serve the same clients by [Options.Replicas], whose
// engines are in packages of their own, gateway/replicas/nats and gateway/replicas/redis. The
// program cmd/mcpbridge is this package with a configuration file.
package gateway
