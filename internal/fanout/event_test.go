package fanout

import (
	"bytes"
	"encoding/json"
	"testing"
)

// Replicas of different builds exchange these names: to change a row is to break an
// upgrade.
func TestEventJSON(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		ev         Event
	}{
		{"tools", `{"topic":{"scope":"notebook","kind":"toolsListChanged"}}`, Event{Topic: tools}},
		{"prompts", `{"topic":{"scope":"","kind":"promptsListChanged"}}`, Event{Topic: Topic{Kind: PromptsListChanged}}},
		{"resources", `{"topic":{"scope":"","kind":"resourcesListChanged"}}`, Event{Topic: Topic{Kind: ResourcesListChanged}}},
		{"a resource", `{"topic":{"scope":"notebook","kind":"resourceUpdated","uri":"note://todo"}}`, Event{Topic: todo}},
		{"a session", `{"topic":{"scope":"all","kind":"stateLost"},"uri":"files"}`, Event{Topic: Topic{Scope: "all", Kind: StateLost}, URI: "files"}},
		{"a sub-resource with meta",
			`{"topic":{"scope":"notebook","kind":"resourceUpdated","uri":"note://todo"},"uri":"note://todo/1","meta":{"n":9007199254740993,"é":null}}`,
			under(todo, "note://todo/1", `{"n":9007199254740993,"é":null}`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := json.Marshal(tt.ev)
			if err != nil || string(got) != tt.want {
				t.Fatalf("Marshal = %s, %v, want %s", got, err, tt.want)
			}
			var back Event
			if err := json.Unmarshal(got, &back); err != nil {
				t.Fatalf("Unmarshal(%s): %v", got, err)
			}
			if back.Topic != tt.ev.Topic || back.URI != tt.ev.URI || !bytes.Equal(back.Meta, tt.ev.Meta) {
				t.Errorf("came back as %v, want %v", back, tt.ev)
			}
		})
	}
}

func TestKindIsStrict(t *testing.T) {
	for _, k := range []Kind{0, StateLost + 1, 255} {
		if text, err := k.MarshalText(); err == nil || k.Valid() {
			t.Errorf("Kind(%d) is encoded as %q", uint8(k), text)
		}
	}
	for _, name := range []string{"", "ToolsListChanged", "toolsListChanged ", "Kind(0)"} {
		k := ResourceUpdated
		if err := k.UnmarshalText([]byte(name)); err == nil || k != ResourceUpdated {
			t.Errorf("UnmarshalText(%q) = %v, %v, want an error", name, k, err)
		}
	}
}
