package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// transcripts is where they are kept: one for each flow and each pair of peers.
const transcripts = "testdata/transcripts"

// names stand for what is random on a wire. A new kind of random value gets a line here;
// without one the transcripts that have it differ from run to run.
var transcriptNames = []bridgetest.Name{
	{Kind: "SESSION", Find: regexp.MustCompile(`Mcp-Session-Id: (\S+)`)},
	{Kind: "SESSION", Find: regexp.MustCompile(`data: /message\S*\?sessionId=(\S+)`)},
	{Kind: "STATE", Find: regexp.MustCompile(`"requestState":"([^"]+)"`)},
	{Kind: "EVENT", Find: regexp.MustCompile(`(?m)^\S*\s+< id: (\S+)$`)},
	{Kind: "VERSION", Find: regexp.MustCompile(`"name":"mcpbridge","version":"([^"]+)"`)},
}

// TestTranscripts holds what the whole program does on both of its wires, and when,
// against the transcripts of testdata: scripted clients and servers meet it over a network
// in memory, in a bubble where time is exact. Nothing but the assembly in
// transcript_rig_test.go knows of the packages that do the work, so that moving and
// renaming them leaves the transcripts as they are.
//
// Whoever changes the wire on purpose records anew, and reads what git says of it:
//
//	go test ./cmd/mcpbridge -run TestTranscripts -update
//	git diff cmd/mcpbridge/testdata/transcripts
//
// A transcript is a txtar file with a section for each HTTP exchange or connection, on the
// wire of the client or that of the server. A line begins with its time since the start
// of the gateway; > is said by the client of that wire, < by its server.
func TestTranscripts(t *testing.T) {
	for _, f := range flows {
		for _, c := range f.cells() {
			t.Run(f.name+"/"+c.name(), func(t *testing.T) {
				var got string
				synctest.Test(t, func(t *testing.T) { got = play(t, f, c) })
				checkTranscript(t, filepath.Join(transcripts, f.name, c.name()+".txtar"), got)
			})
		}
	}
}

// play returns the transcript of one flow between two peers.
func play(t *testing.T, f flow, c cell) string {
	r := newTranscriptRig(t, f, c)
	script := f.legacy
	if c.client.modern {
		script = f.modern
	}
	script(r)
	r.end()
	intro := fmt.Sprintf("%s A %s and a %s.", f.intro, c.client.of("client"), c.server.of("server"))
	return r.rec.Transcript(intro, transcriptNames)
}

func checkTranscript(t *testing.T, path, got string) {
	t.Helper()
	if t.Failed() {
		return // what was played is not the script
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; -update records it", err)
	}
	if diff := bridgetest.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not what happens (- recorded, + now; see TestTranscripts on how to record anew):\n%s", path, diff)
	}
}

// A side is one of the two peers: its era, and how it is reached.
type side struct {
	modern bool
	over   string // "http", "sse" or "stdio"
}

func (s side) era() string {
	if s.modern {
		return "modern"
	}
	return "legacy"
}

func (s side) name() string {
	if s.over == viaHTTP {
		return s.era()
	}
	return s.era() + "-" + s.over
}

func (s side) of(what string) string {
	return s.era() + " " + what + map[string]string{viaHTTP: "", viaSSE: " over HTTP+SSE", viaStdio: " over stdio"}[s.over]
}

// How peers are reached.
const (
	viaHTTP  = "http"
	viaSSE   = "sse"
	viaStdio = "stdio"
)

// A cell is a client and a server.
type cell struct{ client, server side }

func (c cell) name() string { return c.client.name() + "_" + c.server.name() }

// pairs returns the four pairs of eras.
func pairs(client, server string) []cell {
	var out []cell
	for _, c := range []bool{false, true} {
		for _, s := range []bool{false, true} {
			out = append(out, cell{side{c, client}, side{s, server}})
		}
	}
	return out
}
