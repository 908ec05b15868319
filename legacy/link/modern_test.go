package link

import "testing"

func TestM2L35MetaOfTheNotificationTravels(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"none", ``, ``},
		{"empty", `{}`, ``},
		{"no object", `[1]`, ``},
		{"foreign", `{"com.example/a": 1.50, "b":{"c":[]}}`, `{"com.example/a":1.50,"b":{"c":[]}}`},
		{"envelope only", `{"io.modelcontextprotocol/subscriptionId":"7"}`, ``},
		{"escaped", `{"io.modelcontextprotocol\/subscriptionId":7}`, ``},
		{"both", `{"progressToken":1,"x":2,"io.modelcontextprotocol/serverInfo":{}}`, `{"x":2}`},
		{"extension", `{"io.modelcontextprotocol/ui":1}`, `{"io.modelcontextprotocol/ui":1}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			meta := []byte(tt.in)
			got := ForeignMeta(meta)
			clear(meta) // the buffer is used again
			if string(got) != tt.want || tt.want == "" && got != nil {
				t.Errorf("ForeignMeta(%s) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}
