package settings

import (
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// Silence ends a list, and what the gateway asks for itself; it ends a client's call only
// where the configuration says so.
func TestTimeouts(t *testing.T) {
	for _, tt := range []struct {
		request         time.Duration
		call, list, own time.Duration
	}{
		{0, 0, ListTimeout, ListTimeout},
		{time.Hour, time.Hour, time.Hour, time.Hour},
		{time.Second, time.Second, time.Second, time.Second},
	} {
		o := Timeouts{Request: tt.request}
		if call, list := o.Silence(spec.MethodToolsCall), o.Silence(spec.MethodResourcesTemplates); call != tt.call || list != tt.list || o.Own() != tt.own {
			t.Errorf("Request %v: a call %v, a list %v, own %v; want %v, %v, %v", tt.request, call, list, o.Own(), tt.call, tt.list, tt.own)
		}
	}
}
