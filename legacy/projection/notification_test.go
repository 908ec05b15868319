package projection

import (
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

func TestNotification(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"progress", `{"progressToken":0,"progress":1.50,"total":2,"message":"m","x":{"y":[ ]}}`, `{"progressToken":0,"progress":1.50,"total":2,"message":"m","x":{"y":[ ]}}`},
		{"what is not said", `{"progressToken":0,"progress":1,"total":null,"message":null,"x":null}`, `{"progressToken":0,"progress":1,"x":null}`},
		{"a log message about nothing", `{"level":"info","logger":null,"data":null}`, `{"level":"info","data":null}`},
		{"a stamp", `{"level":"info","data":1,"_meta":{"io.modelcontextprotocol/subscriptionId":1}}`, `{"level":"info","data":1}`},
		{"a stamp among others", `{"_meta":{"io.modelcontextprotocol/subscriptionId":1,"a":2},"level":"info","data":1}`, `{"_meta":{"a":2},"level":"info","data":1}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, rev := range spec.Revisions(spec.Legacy) {
				n := Notification(rev, mcp.Notification{Method: "notifications/progress", Params: []byte(tt.in)})
				if string(n.Params) != tt.want || n.Method != "notifications/progress" {
					t.Errorf("Notification(%s, %s) = %s, want %s", rev, tt.in, n.Params, tt.want)
				}
			}
		})
	}
}
