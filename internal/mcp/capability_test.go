package mcp

import (
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

func TestServerCapabilities(t *testing.T) {
	c := ReadServerCapabilities([]byte(`{"tools":{"listChanged":true},"prompts":{"listChanged":false},"resources":{"subscribe":true},"logging":{},"completions":null,"tasks":{"requests":{"tools":{"call":{}}}}}`))
	if want := (Lists{Tools: true}); c.Lists != want || !c.Subscribe || !c.Logging || !c.TaskCalls {
		t.Errorf("capabilities = %+v", c)
	}
	for method, want := range map[string]bool{
		spec.MethodToolsCall: true, spec.MethodSetLevel: true, spec.MethodComplete: false, spec.MethodPing: false, "events/stream": false,
	} {
		if c.Declares(method) != want {
			t.Errorf("Declares(%s) = %v, want %v", method, !want, want)
		}
	}
	if c := ReadServerCapabilities(nil); c.Subscribe || c.Declares(spec.MethodToolsCall) {
		t.Errorf("without capabilities: %+v", c)
	}
}

// What an input request needs of a client, and which of it the client lacks.
func TestM2L21MissingCapability(t *testing.T) {
	for _, tt := range []struct{ has, method, params, want string }{
		{`{"elicitation":{}}`, spec.MethodElicit, `{}`, ""},
		{`{"elicitation":{"form":{}}}`, spec.MethodElicit, `{"mode":"form"}`, ""},
		{`{"elicitation":{"url":{}}}`, spec.MethodElicit, `{}`, `{"elicitation":{"form":{}}}`},
		{`{"elicitation":{"url":{}}}`, spec.MethodElicit, `{"mode":"url"}`, ""},
		{`{"elicitation":{}}`, spec.MethodElicit, `{"mode":"url"}`, `{"elicitation":{"url":{}}}`},
		{`{}`, spec.MethodElicit, `{}`, `{"elicitation":{"form":{}}}`},
		{`{"elicitation":null}`, spec.MethodElicit, `{}`, `{"elicitation":{"form":{}}}`},
		{`{"sampling":{}}`, spec.MethodSample, `{}`, ""},
		{`{"sampling":{}}`, spec.MethodSample, `{"tools":[]}`, `{"sampling":{"tools":{}}}`},
		{`{"sampling":{}}`, spec.MethodSample, `{"toolChoice":{}}`, `{"sampling":{"tools":{}}}`},
		{`{"sampling":{"tools":{}}}`, spec.MethodSample, `{"tools":[]}`, ""},
		{`{}`, spec.MethodSample, `{}`, `{"sampling":{}}`},
		{`{"roots":{}}`, spec.MethodRootsList, ``, ""},
		{`{}`, spec.MethodRootsList, ``, `{"roots":{}}`},
		{`{}`, "another/method", ``, ""},
	} {
		if got := string(MissingCapability([]byte(tt.has), tt.method, []byte(tt.params))); got != tt.want {
			t.Errorf("MissingCapability(%s, %s, %s) = %s, want %s", tt.has, tt.method, tt.params, got, tt.want)
		}
	}
}

func TestCanBeAsked(t *testing.T) {
	for has, want := range map[string]bool{
		`{}`: false, `{"roots":{}}`: false, `{"elicitation":null}`: false,
		`{"elicitation":{}}`: true, `{"roots":{},"sampling":{"tools":{}}}`: true,
	} {
		if got := CanBeAsked([]byte(has)); got != want {
			t.Errorf("CanBeAsked(%s) = %v, want %v", has, got, want)
		}
	}
}

// Of a client's capabilities a server is told those that decide what it may ask; the order
// in which clients write them makes no profile of its own.
func TestM2L07Crossing(t *testing.T) {
	hide := []string{"x/hidden"}
	for _, tt := range []struct {
		has          string
		experimental bool
		want         string
	}{
		{`{"sampling":{"tools":{},"other":1},"roots":{"listChanged":true},"tasks":{}}`, false, `{"roots":{},"sampling":{"tools":{}}}`},
		{`{"roots":null,"elicitation":{"url":{},"form":null}}`, false, `{"elicitation":{"url":{}}}`},
		{`{"extensions":{"x/shown":{"b":1,"a":2},"x/hidden":{}}}`, false, `{"extensions":{"x/shown":{"a":2,"b":1}}}`},
		{`{"extensions":{"x/hidden":{}}}`, false, `{}`},
		{`{"experimental":{"e":{}}}`, false, `{}`},
		{`{"experimental":{"e":{}}}`, true, `{"experimental":{"e":{}}}`},
		{``, true, `{}`},
	} {
		if got := string(Crossing([]byte(tt.has), tt.experimental, hide)); got != tt.want {
			t.Errorf("Crossing(%s, %v) = %s, want %s", tt.has, tt.experimental, got, tt.want)
		}
	}
}

func TestT32Hiding(t *testing.T) {
	hide := []string{"x/hidden"}
	for has, want := range map[string]string{
		`{"tools":{},"tasks":{}}`: `{"tools":{}}`,
		`{"experimental":{"x/hidden":{}},"extensions":{"x/hidden":{},"y":{}},"tools":{}}`: `{"extensions":{"y":{}},"tools":{}}`,
		`{"extensions":{"y":{}}}`: `{"extensions":{"y":{}}}`,
	} {
		if got := string(WithoutTasks([]byte(has), hide)); got != want {
			t.Errorf("WithoutTasks(%s) = %s, want %s", has, got, want)
		}
	}
}
