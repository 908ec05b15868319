package remember

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

var aKey = Key{0xab, 31: 0xcd}

func aRecord() Record {
	return Record{
		Era: spec.Modern, Revisions: []spec.Revision{spec.Rev20260728, "2027-01-01"}, Said: time.Unix(2e9, 5).UTC(), First: spec.MethodInitialize,
		Description: &mcp.Description{
			Capabilities: json.RawMessage(`{"tools":{"n":9007199254740993,"z":1,"a":"<&>"}}`),
			ServerInfo:   json.RawMessage(`{"name":"é\u00e9","version":"1"}`),
			Instructions: json.RawMessage(`"two\nlines"`),
			Cache:        mcp.CacheHint{TTL: 5, Public: true},
		},
	}
}

// A record is decoded as it was encoded.
func TestRecordRoundTrip(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Record)
	}{
		{"everything", func(*Record) {}},
		{"no description", func(r *Record) { r.Description = nil }},
		{"only capabilities", func(r *Record) {
			r.Description = &mcp.Description{Capabilities: json.RawMessage("{}")}
		}},
		{"legacy, no revisions", func(r *Record) { r.Era, r.Revisions, r.First = spec.Legacy, nil, "" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := aRecord()
			tt.change(&want)
			data, err := encode(aKey, want)
			if err != nil {
				t.Fatal(err)
			}
			got, err := decode(aKey, data)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("decode(%s) = %+v, %v, want %+v", data, got, err, want)
			}
		})
	}
}

func TestEncodeRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Record)
		want   string
	}{
		{"no era", func(r *Record) { r.Era = spec.Unknown }, `unknown era "unknown"`},
		{"no capabilities", func(r *Record) { r.Description.Capabilities = nil }, "the capabilities are not an object"},
		{"capabilities null", func(r *Record) { r.Description.Capabilities = json.RawMessage("null") }, "the capabilities are not an object"},
		{"broken JSON", func(r *Record) { r.Description.Capabilities = json.RawMessage("{") }, "unexpected end"},
		{"serverInfo", func(r *Record) { r.Description.ServerInfo = json.RawMessage("[]") }, "serverInfo is not an object"},
		{"instructions", func(r *Record) { r.Description.Instructions = json.RawMessage("{}") }, "the instructions are not a string"},
		{"too long", func(r *Record) {
			r.Description.Instructions = json.RawMessage(`"` + strings.Repeat("x", maxFile) + `"`)
		}, "too long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := aRecord()
			tt.change(&r)
			if _, err := encode(aKey, r); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("encode = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := fmt.Sprintf(`{"format":1,"key":"%s","said":"2026-01-01T00:00:00Z","era":"legacy","description":{"capabilities":{}}}`, aKey)
	if _, err := decode(aKey, []byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, old, new string }{
		{"nothing", good, ""},
		{"cut off", "}}", "}"},
		{"something behind it", "}}", "}} {}"},
		{"another format", `"format":1`, `"format":2`},
		{"no format", `"format":1,`, ""},
		{"another key", "ab00", "ac00"},
		{"an era nobody knows", `"legacy"`, `"ancient"`},
		{"no time", "2026-01-01T00:00:00Z", "yesterday"},
		{"capabilities of another kind", "{}}}", "[]}}"},
		{"capabilities null", "{}}}", "null}}"},
		{"serverInfo null", "{}}}", `{},"serverInfo":null}}`},
		{"instructions of another kind", "{}}}", `{},"instructions":7}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bad := strings.Replace(good, tt.old, tt.new, 1)
			if r, err := decode(aKey, []byte(bad)); err == nil {
				t.Errorf("decode(%s) = %+v, want an error", bad, r)
			}
		})
	}
}

func TestDiff(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Record)
		want   []string
	}{
		{"nothing", func(*Record) {}, nil},
		{"time and hint", func(r *Record) { r.Said, r.Description.Cache = time.Time{}, mcp.CacheHint{} }, nil},
		{"order and white space", func(r *Record) {
			r.Description.Capabilities = json.RawMessage(`{ "tools": {"a":"<&>", "z":1, "n":9007199254740993} }`)
		}, nil},
		{"a number beyond float64", func(r *Record) {
			r.Description.Capabilities = json.RawMessage(`{"tools":{"a":"<&>","z":1,"n":9007199254740992}}`)
		}, []string{"capabilities"}},
		{"no description", func(r *Record) { r.Description = nil }, []string{"capabilities", "serverInfo", "instructions"}},
		{"era, revisions and habit", func(r *Record) { r.Era, r.Revisions, r.First = spec.Legacy, r.Revisions[:1], "" }, []string{"era", "revisions", "first"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			is := aRecord()
			tt.change(&is)
			if got := Diff(aRecord(), is); !slices.Equal(got, tt.want) {
				t.Errorf("Diff = %q, want %q", got, tt.want)
			}
		})
	}
}

// Decoding any file returns an error or a record that can be encoded.
func FuzzDecode(f *testing.F) {
	data, err := encode(aKey, aRecord())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(fmt.Sprintf(`{"format":1,"key":"%s","era":"legacy"}`, aKey)))
	f.Add(bytes.ReplaceAll(data, []byte(`:{`), []byte(`:null,"x":{`)))
	f.Add([]byte(`{"format":1e0}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decode(aKey, data)
		if err != nil {
			return
		}
		again, err := encode(aKey, r)
		if err != nil {
			t.Fatalf("decode(%q) = %+v, which encode refuses: %v", data, r, err)
		}
		if got, err := decode(aKey, again); err != nil || len(Diff(r, got)) != 0 || !got.Said.Equal(r.Said) {
			t.Fatalf("decode(%q) = %+v, %v, want %+v", again, got, err, r)
		}
	})
}
