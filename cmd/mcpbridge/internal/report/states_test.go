package report

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// table returns what is printed into a table.
func table(t *testing.T, print func(io.Writer)) string {
	t.Helper()
	var out bytes.Buffer
	into := output.NewTable(&out, false)
	print(into)
	if err := into.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// hideSecrets takes out of a text what is a secret here.
func hideSecrets(text string) string { return strings.ReplaceAll(text, "s3cret", "[hidden]") }

// What others say of themselves is a row each, on one line, without secrets; what can't be used
// is an error that says so.
func TestStates(t *testing.T) {
	s := &States{
		Servers: []State{
			{Name: "a", State: "ready", Ready: true, Unmatched: []string{`tools.allow: the server has no tool "gone"`}},
			{Name: "b", State: "down", Reason: "it ended\n\x1b[2J"},
		},
		Replicas: NewReplicaStates(&Replicas{Engine: "redis://kv:6379"}, replicas.Comparison{Members: []replicas.Compared{
			{Replica: replicas.Replica{Instance: "AAAA2222", Addr: "10.0.0.1:2528", Version: "v1.0.0"}},
			{Replica: replicas.Replica{Instance: "BBBB3333", Addr: "10.0.0.2:2528", Version: "v1.0.0", Draining: true}, Clock: 6 * time.Second, Differs: []replicas.Difference{
				{What: replicas.DiffersClock, Text: "it is 6s ahead"}, {What: replicas.DiffersKeys, Text: "s3cret is not its first"},
			}},
			{Replica: replicas.Replica{Addr: "10.0.0.3:2528"}, Differs: []replicas.Difference{{What: replicas.DiffersAnswer, Text: "nobody answers"}}},
		}}, hideSecrets),
	}
	const want = `
SERVER  STATE    REASON
a       ready    
b       down     it ended\x0a\x1b[2J
a       warning  tools.allow: the server has no tool "gone"

REPLICAS BY      STATE  REASON
redis://kv:6379  ready  

REPLICA   ADDRESS        VERSION  ACCEPTS  REASON
AAAA2222  10.0.0.1:2528  v1.0.0   yes      
BBBB3333  10.0.0.2:2528  v1.0.0   no       clock: it is 6s ahead; keys: [hidden] is not its first; it is about to end
-         10.0.0.3:2528  -        no       answer: nobody answers
`
	if text := table(t, s.Print); text != want {
		t.Errorf("Print prints\n%s\nwant\n%s", text, want)
	}
	if got := s.Replicas.Living[1].Clock; got != 6 {
		t.Errorf("its clock is ahead by %v, want 6 seconds", got)
	}
	const err = "1 of 2 servers can't be used; probe says more of each: mcpbridge probe\n" +
		"2 of 3 living replicas and this configuration do not go together: requests for sessions of the other would fail"
	if got := s.Err(); got == nil || got.Error() != err {
		t.Errorf("Err = %v, want %s", got, err)
	}
}

func TestStatesErr(t *testing.T) {
	ready := []State{{Name: "a", State: "ready", Ready: true}}
	away := NewReplicaStates(&Replicas{Peers: "dns://peers"}, replicas.Comparison{Away: errors.New("asking s3cret: no such host")}, hideSecrets)
	for _, tt := range []struct {
		name string
		s    States
		want string
	}{
		{"nobody else", States{Servers: ready}, ""},
		{"no replica yet", States{Servers: ready, Replicas: &ReplicaStates{}}, ""},
		{"replicas that can't be asked", States{Servers: ready, Replicas: away}, "the replicas can't be asked for: a process with this configuration would serve by itself"},
		{"no server", States{Servers: []State{{Name: "a"}, {Name: "b"}}}, "2 of 2 servers can't be used; probe says more of each: mcpbridge probe"},
	} {
		if err := tt.s.Err(); tt.want == "" && err != nil || tt.want != "" && (err == nil || err.Error() != tt.want) {
			t.Errorf("%s: Err = %v, want %q", tt.name, err, tt.want)
		}
	}
	const want = "\nREPLICAS BY  STATE  REASON\ndns://peers  down   asking [hidden]: no such host\n"
	if text := table(t, (&States{Replicas: away}).Print); !strings.HasSuffix(text, want) {
		t.Errorf("Print prints\n%s\nwant it to end with\n%s", text, want)
	}
}
