package handover

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
)

// whole is a session with all that a record has.
func whole() legacyfront.Handover {
	id := &mcp.Identity{Principal: "ada", Issuer: "https://issuer", Subject: "a", Scopes: []string{"read"},
		Claims: map[string]json.RawMessage{"groups": json.RawMessage(`["x"]`)}, Expires: time.Date(2100, 1, 1, 0, 0, 0, 5, time.UTC)}
	id.SetToken("its token")
	return legacyfront.Handover{
		ID: "1AAAAAAAA-0123456789abcdef", Name: "its name", Revision: "2025-11-25",
		Opener:       mcp.Sender{Share: mcp.Share{Principal: "ada", Net: netip.MustParsePrefix("2001:db8::/64")}, Identity: id},
		Capabilities: json.RawMessage(`{"elicitation":{}}`), ClientInfo: json.RawMessage(`{"name":"c"}`),
		Offered: mcp.ServerCapabilities{Lists: mcp.Lists{Tools: true, Prompts: true, Resources: true}, Subscribe: true, Logging: true, TaskCalls: true},
		Opened:  7, Level: "debug", Lists: true, URIs: []string{"file:///a", "file:///b"},
	}
}

// plain is a session with no more than each has.
func plain() legacyfront.Handover {
	return legacyfront.Handover{ID: "1AAAAAAAA-fedcba9876543210", Name: "another", Revision: "2024-11-05", Opener: mcp.Sender{Share: mcp.Share{Principal: mcp.Anonymous}}}
}

// A session is handed over in the form that other versions read, and what they hand over is
// read. Members that a later version adds are skipped.
func TestForms(t *testing.T) {
	forms := bridgetest.ReadForms(t)
	text, err := json.Marshal(parcel{Sessions: []record{newRecord(whole()), newRecord(plain())}})
	if err != nil {
		t.Fatal(err)
	}
	forms.Want("parcel", string(text))
	for _, name := range []string{"parcel", "parcel/later"} {
		var got parcel
		if err := json.Unmarshal([]byte(forms.Text(name)), &got); err != nil || len(got.Sessions) != 2 {
			t.Fatalf("%s: %d sessions, %v", name, len(got.Sessions), err)
		}
		for i, want := range []legacyfront.Handover{whole(), plain()} {
			if h, err := got.Sessions[i].handover(); err != nil || !reflect.DeepEqual(h, want) {
				t.Errorf("%s: session %d is read as\n%+v, %v, want\n%+v", name, i, h, err, want)
			}
		}
	}
	text, err = json.Marshal(receipt{Refused: []string{"", "too many sessions"}})
	if err != nil {
		t.Fatal(err)
	}
	forms.Want("receipt", string(text))
	var got receipt
	if err := json.Unmarshal([]byte(forms.Text("receipt/later")), &got); err != nil || !reflect.DeepEqual(got.Refused, []string{"", "too many sessions"}) {
		t.Errorf("a later receipt is read as %+v, %v", got, err)
	}
}

// The place of a session is found under the key, and in the form, that other versions know.
func TestFormOfPlace(t *testing.T) {
	text, err := json.Marshal(placeRecord{At: "AAAAAAAA"})
	if err != nil || string(text) != `{"at":"AAAAAAAA"}` {
		t.Errorf("a place is written as %s, %v", text, err)
	}
	var later placeRecord
	if err := json.Unmarshal([]byte(`{"at":"AAAAAAAA","since":7,"zone":{}}`), &later); err != nil || later.At != "AAAAAAAA" {
		t.Errorf("a later place is read as %+v, %v", later, err)
	}
	if got := keyOf("1AAAAAAAA-0123456789abcdef"); got != "session 1AAAAAAAA-0123456789abcdef" {
		t.Errorf("it is kept under %q", got)
	}
}
