package telemetry

import (
	"bytes"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/mcpbridge/mcpbridge/internal/redact"
)

func decoded(t *testing.T, text []byte) []*commonpb.KeyValue {
	t.Helper()
	var span tracepb.Span
	if err := proto.Unmarshal(text, &span); err != nil {
		t.Fatal(err)
	}
	return span.Attributes
}

// A kind has its own attributes, whichever had its place before.
func TestKinds(t *testing.T) {
	tr := &Tracer{}
	first := kind{server: "docs", era: "modern", method: "tools/call", revision: "2026-07-28", outcome: "ok", transport: "tcp", protocol: "http", version: "1.1"}
	others := []kind{first, first, first, first, first, first, first}
	others[0].server, others[1].era, others[2].method, others[3].revision = "cods", "legacy", "tools/list", "2025-11-25"
	others[4].outcome, others[5].version, others[6].address = "no", "2.0", "docs:80"
	want := tr.appendAttributes(nil, &first)
	for _, other := range others {
		for range 200 { // either gets the place now and then
			if got := tr.appendKind(nil, &first); !bytes.Equal(got, want) {
				t.Fatalf("attributes %v, want %v", decoded(t, got), decoded(t, want))
			}
			if got, want := tr.appendKind(nil, &other), tr.appendAttributes(nil, &other); !bytes.Equal(got, want) {
				t.Fatalf("attributes %v, want %v", decoded(t, got), decoded(t, want))
			}
		}
	}
}

// What a client or a server has chosen is not kept: a secret that is learned later is hidden
// in all spans that follow.
func TestKindsKeepNoTextFromOutside(t *testing.T) {
	const secret = "hunter2-hunter2"
	tr := &Tracer{secrets: redact.New()}
	for i, c := range []kind{
		{server: "docs", method: secret},
		{server: "docs", method: "tools/call", revision: secret},
		{server: "docs", method: "tools/call", version: secret},
	} {
		tr.appendKind(nil, &c)
		for j := range tr.kinds {
			if kept := tr.kinds[j].Load(); kept != nil {
				t.Errorf("%d: %+v is kept", i, kept.kind)
			}
		}
	}
	tr.secrets.Learn(secret)
	if got := tr.appendKind(nil, &kind{server: "docs", method: "tools/call", revision: secret}); bytes.Contains(got, []byte(secret)) {
		t.Errorf("a secret in %v", decoded(t, got))
	}
}
