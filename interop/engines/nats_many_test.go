package engines

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
	"github.com/mcpbridge/mcpbridge/internal/replicas/natskv"
)

// newNATS returns a server, and a client that writes to it beside the replicas.
func newNATS(t *testing.T) (*natsWorld, jetstream.JetStream) {
	t.Helper()
	w := &natsWorld{t: t, port: freePort(t), dir: t.TempDir()}
	w.Start(false)
	t.Cleanup(w.Stop)
	nc, err := nats.Connect(w.s.ClientURL(), nats.UserInfo("replica", "open sesame"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return w, js
}

// A replica that starts reads all claims of the others, however many there are.
func TestNATSManyClaims(t *testing.T) {
	t.Parallel()
	const claims = 100_000
	w, js := newNATS(t)
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "test_claims", Storage: jetstream.MemoryStorage})
	if err != nil {
		t.Fatal(err)
	}
	for i := range claims {
		if _, err := js.PublishAsync("$KV.test_claims."+fmt.Sprintf("%032x", i), []byte("DEADDEAD 1")); err != nil {
			t.Fatal(err)
		}
		if i%1000 == 999 {
			<-js.PublishAsyncComplete()
		}
	}
	if s, err := kv.Status(t.Context()); err != nil || s.Values() != claims {
		t.Fatalf("the bucket has %v, %v", s, err)
	}
	s, err := natskv.Open(natskv.Options{URL: parse(t, "nats://replica:open%20sesame@"+w.s.Addr().String()), Prefix: "test", Name: t.Name(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	begin := time.Now()
	key := fmt.Sprintf("%032x", claims-1)
	for tries := 1; ; tries++ {
		snap, err := pollFor(t, s, key, tries > 1) // as after a failure
		if err == nil && snap.Claims[key].Value != "" {
			t.Logf("read after %v and %d tries", time.Since(begin), tries)
			return
		}
		if time.Since(begin) > patience {
			t.Fatalf("after %d tries: %v", tries, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// pollFor polls as the loop of a replica does, which waits a second.
func pollFor(t *testing.T, s *natskv.Store, key string, fresh bool) (member.Snapshot, error) {
	ctx, cancel := context.WithTimeout(t.Context(), replicas.Heartbeat)
	defer cancel()
	return s.Poll(ctx, []string{key}, fresh)
}
