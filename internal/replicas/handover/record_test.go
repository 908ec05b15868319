package handover

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
)

// fullHandover has a value in every field.
func fullHandover() legacyfront.Handover {
	h := handoverOf("1AAAAAAAA-full")
	id := &mcp.Identity{Principal: alice, Issuer: "https://issuer", Subject: "a", Scopes: []string{"read"},
		Claims: map[string]json.RawMessage{"groups": json.RawMessage(`["x"]`)}}
	id.SetToken("the token")
	h.Opener = mcp.Sender{Share: mcp.Share{Principal: alice, Net: netip.MustParsePrefix("10.0.0.0/24")}, Identity: id}
	h.Offered = mcp.ServerCapabilities{Lists: mcp.Lists{Tools: true, Prompts: true, Resources: true}, Subscribe: true, Logging: true, TaskCalls: true}
	h.Level, h.Lists, h.URIs = "info", true, []string{"note://a", "note://b"}
	return h
}

// Nothing of a session is lost on the wire, and what a later version adds is skipped.
func TestRecord(t *testing.T) {
	for name, want := range map[string]legacyfront.Handover{"full": fullHandover(), "little": handoverOf("1AAAAAAAA-little")} {
		text, err := json.Marshal(parcel{[]record{newRecord(want)}})
		if err != nil {
			t.Fatal(err)
		}
		later := strings.Replace(string(text), `{"id"`, `{"later":[1],"id"`, 1)
		var p parcel
		if err := json.Unmarshal([]byte(later), &p); err != nil || len(p.Sessions) != 1 {
			t.Fatalf("%s: %s: %v", name, later, err)
		}
		got, err := p.Sessions[0].handover()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, want)
		}
		if got.Opener.Identity.Token() != want.Opener.Identity.Token() {
			t.Errorf("%s: the token is %q", name, got.Opener.Identity.Token())
		}
	}
}

// Each of the fields that a client was told alone is handed over as itself.
func TestRecordKeepsWhatWasOffered(t *testing.T) {
	fields := reflect.TypeFor[mcp.Lists]().NumField()
	for i := range fields + 3 {
		h := handoverOf("1AAAAAAAA-x")
		if i < fields {
			reflect.ValueOf(&h.Offered.Lists).Elem().Field(i).SetBool(true)
		} else {
			*[]*bool{&h.Offered.Subscribe, &h.Offered.Logging, &h.Offered.TaskCalls}[i-fields] = true
		}
		r := newRecord(h)
		if got, err := r.handover(); err != nil || !reflect.DeepEqual(got.Offered, h.Offered) {
			t.Errorf("offered %+v, %v, want %+v", got.Offered, err, h.Offered)
		}
	}
}

// The size is not below what a record takes.
func TestRecordSize(t *testing.T) {
	h := fullHandover()
	h.Capabilities = []byte(`{"x":"` + strings.Repeat("c", 10000) + `"}`)
	h.ClientInfo = []byte(`{"x":"` + strings.Repeat("i", 10000) + `"}`)
	for range 1000 {
		h.URIs = append(h.URIs, "note://"+strings.Repeat("u", 100))
	}
	h.Opener.Identity.SetToken(strings.Repeat("t", 10000))
	r := newRecord(h)
	text, err := json.Marshal(r)
	if err != nil || r.size() < len(text)*9/10 || r.size() > len(text)*11/10 {
		t.Errorf("size() = %d of %d bytes, %v", r.size(), len(text), err)
	}
}

func TestRecordMalformed(t *testing.T) {
	if got, err := (&record{ID: "1AAAAAAAA-x", Net: "10.0.0.0/99"}).handover(); err == nil {
		t.Errorf("a network that is none = %+v", got)
	}
}
