package patience

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// block is the program of a server on its pipes that does one thing at a time: while a call
// runs, it reads nothing, and answers no ping.
func block(era string) {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				ProtocolVersion string
				Arguments       struct{ MS int }
			}
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		answer := `"error":{"code":-32601,"message":"method not found"}`
		switch modern := era == modernEra; {
		case m.Method == "tools/call":
			time.Sleep(time.Duration(m.Params.Arguments.MS) * time.Millisecond)
			answer = `"result":{"resultType":"complete","content":[{"type":"text","text":"waited"}]}`
		case m.Method == "tools/list":
			answer = `"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"wait","inputSchema":{"type":"object"}}]}`
		case m.Method == "ping" && !modern:
			answer = `"result":{}`
		case m.Method == "initialize" && modern:
			answer = `"error":{"code":-32022,"message":"no handshake","data":{"supported":["2026-07-28"],"requested":"2025-11-25"}}`
		case m.Method == "initialize":
			answer = fmt.Sprintf(`"result":{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"block","version":"0"}}`, m.Params.ProtocolVersion)
		case m.Method == "server/discover" && modern:
			answer = `"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"block","version":"0"}}`
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, answer)
	}
}
