package wire

import (
	"bytes"
	"testing"
)

// Only of params whose names every program reads alike, and only of the bytes that were
// parsed.
func TestPlain(t *testing.T) {
	for _, tt := range []struct {
		name, params string
		want         bool
	}{
		{"usual", `{"name":"x","arguments":{"Name":"y","name":"z"},"_meta":{"NAME":1}}`, true},
		{"one", `{"name":"x"}`, true},
		{"none", `{}`, true},
		{"another case", `{"name":"x","Name":"y"}`, false},
		{"another case, apart", `{"NAME":"x","b":1,"name":"y"}`, false},
		{"an escape", `{"name":"x","\u004eame":"y"}`, false},
		{"an escape alone", `{"n\u0061me":"x"}`, false},
		{"a letter that folds", `{"name":"x","taſk":"y"}`, false},
		{"many", `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}`, false},
	} {
		m, err := Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":`+tt.params+`}`), Options{UniqueParams: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Plain.Of(m.Params); got != tt.want {
			t.Errorf("%s: Of = %v, want %v", tt.name, got, tt.want)
		}
		if m.Plain.Of(bytes.Clone(m.Params)) || m.Plain.Of(m.Params[1:]) || m.Plain.Of(nil) || (Plain{}).Of(nil) {
			t.Errorf("%s: Of = true of another text", tt.name)
		}
	}
	m, err := Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"name":"x"}}`), Options{})
	if err != nil || m.Plain.Of(m.Params) {
		t.Errorf("Of = true, %v, though duplicates were not looked for", err)
	}
}
