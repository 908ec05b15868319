package wire

import (
	"strings"
	"testing"
)

func TestOuterIDAtTheStart(t *testing.T) {
	for _, tt := range []struct {
		name, start, id string
		isRequest       bool
	}{
		{"answer", `{"jsonrpc":"2.0","id":7,"result":{"a`, `7`, false},
		{"error", `{"id":"x", "error":{"a":1,"b`, `"x"`, false},
		{"request", `{"jsonrpc":"2.0","id":7,"method":"a","params":{"a":1,"b`, `7`, true},
		{"notification", `{"jsonrpc":"2.0","method":"a","params":{"a":1,"b`, `null`, false},
		{"request whose method comes late", `{"jsonrpc":"2.0","id":7,"params":{"a":1,"b`, `null`, false},
		{"id comes late", `{"jsonrpc":"2.0","result":{"a":1,"id":7,"b`, `null`, false},
		{"batch", `[{"jsonrpc":"2.0","id":7,"result":{"a`, `null`, false},
		{"no JSON", `hello, world`, `null`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if id, isRequest := OuterID([]byte(tt.start), nil); id.String() != tt.id || isRequest != tt.isRequest {
				t.Errorf("OuterID(%s) = %s, %v, want %s, %v", tt.start, id, isRequest, tt.id, tt.isRequest)
			}
		})
	}
}

// Each row is a whole message, of which the ends are known. The id that comes last counts, and
// nothing that only looks like it.
func TestOuterIDAtTheEnd(t *testing.T) {
	const known = 64
	long := strings.Repeat("x", 500)
	for _, tt := range []struct {
		name, text, id string
		isRequest      bool
	}{
		{"answer", `{"result":{"a":"` + long + `"},"jsonrpc":"2.0","id":7}`, `7`, false},
		{"answer, with its version first", `{"jsonrpc":"2.0","result":{"a":"` + long + `"},"id":7}`, `7`, false},
		{"answer, with its version last", `{"result":{"a":"` + long + `"}, "id" : "x\"y" , "jsonrpc": "2.0" }` + "\n", `"x\"y"`, false},
		{"error", `{"error":{"code":1,"message":"` + long + `"},"id":-12,"jsonrpc":"2.0"}`, `-12`, false},
		{"request", `{"method":"a","params":{"a":"` + long + `"},"jsonrpc":"2.0","id":7}`, `7`, true},
		{"notification", `{"method":"a","params":{"a":"` + long + `","id":7},"jsonrpc":"2.0"}`, `null`, false},
		{"notification whose params have an id last", `{"method":"a","params":{"a":"` + long + `","id":7}}`, `null`, false},
		{"unknown kind", `{"params":{"a":"` + long + `"},"jsonrpc":"2.0","id":7}`, `null`, false},
		{"id in the result", `{"result":{"a":"` + long + `","id":7}}`, `null`, false},
		{"id in a string", `{"result":"` + long + `,\"jsonrpc\":\"2.0\",\"id\":7}"}`, `null`, false},
		{"id in a string behind the result", `{"result":{"a":"` + long + `"},"x":"},\"id\":7"}`, `null`, false},
		{"id in a string, as its name", `{"result":{"a":"` + long + `"},",\"id":7}`, `null`, false},
		{"id in another member", `{"result":{"a":"` + long + `"},"x":{"id":7}}`, `null`, false},
		{"another member last", `{"result":{"a":"` + long + `"},"id":7,"x":1}`, `null`, false},
		{"id of another kind", `{"result":{"a":"` + long + `"},"id":null}`, `null`, false},
		{"id that is longer than what is known", `{"result":{},"a":"` + long + `","id":"` + long + `"}`, `null`, false},
		{"number that is longer than what is known", `{"result":{},"id":` + strings.Repeat("7", 500) + `}`, `null`, false},
		{"name that is cut off", `{"result":{"a":"` + long + `"},"id` + strings.Repeat(" ", known-6) + `":7}`, `null`, false},
		{"batch", `[{"result":{"a":"` + long + `"},"jsonrpc":"2.0","id":7}]`, `null`, false},
		{"text", long + `,"id":7}`, `null`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			start, end := []byte(tt.text[:known]), []byte(tt.text[len(tt.text)-known:])
			if id, isRequest := OuterID(start, end); id.String() != tt.id || isRequest != tt.isRequest {
				t.Errorf("OuterID(%s, %s) = %s, %v, want %s, %v", start, end, id, isRequest, tt.id, tt.isRequest)
			}
		})
	}
	for _, end := range []string{"", "}", `7}`, `:7}`, `"id":7}`, `\","jsonrpc":"2.0"}`, `"}`, `"`, `"":}`} {
		if id, _ := OuterID([]byte(`{"result":{`), []byte(end)); !id.IsZero() {
			t.Errorf("OuterID() with the end %s = %s, want none", end, id)
		}
	}
}

// FuzzOuterID compares the id with that of the whole message.
func FuzzOuterID(f *testing.F) {
	f.Add(`{"result":{"a":"b"},"jsonrpc":"2.0","id":7}`, 9, 30)
	f.Add(`{"method":"a","params":{},"x":",\"id\":7","id":"\\"}`, 20, 12)
	f.Fuzz(func(t *testing.T, text string, first, last int) {
		if first < 0 || last < 0 || first > len(text) || last > len(text) || Check([]byte(text), 0) != nil || !IsObject([]byte(text)) || CheckUnique([]byte(text)) != nil {
			return
		}
		id, isRequest := OuterID([]byte(text[:first]), []byte(text[len(text)-last:]))
		if want, _ := ParseID(Get([]byte(text), "id")); !id.IsZero() && id != want || isRequest && Get([]byte(text), "method") == nil {
			t.Errorf("OuterID() of %s, of which %d and %d bytes are known, = %s, %v, want %s", text, first, last, id, isRequest, want)
		}
	})
}
