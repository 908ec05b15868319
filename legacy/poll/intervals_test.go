package poll

import (
	"testing"
	"time"
)

func TestM2L05PolledKindsAreDeclared(t *testing.T) {
	every := Intervals{Tools: time.Minute, Prompts: time.Minute, Resources: time.Minute, Updates: time.Minute}
	for _, tt := range []struct {
		name, server, want string
		every              Intervals
	}{
		{"what is configured", `{"tools":{},"resources":{"x":1}}`, `{"tools":{"listChanged":true},"resources":{"x":1,"subscribe":true}}`, Intervals{Tools: 1, Updates: 1}},
		{"nothing is invented", `{"completions":{}}`, `{"completions":{}}`, every},
		{"all of it", `{"tools":{"listChanged":false},"prompts":{},"resources":{}}`, `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true}}`, every},
		{"nothing unless configured", `{"tools":{}}`, `{"tools":{}}`, Intervals{}},
	} {
		if got := string(Declare([]byte(tt.server), tt.every.Kinds([]byte(tt.server)))); got != tt.want {
			t.Errorf("%s: Declare = %s, want %s", tt.name, got, tt.want)
		}
	}
}
