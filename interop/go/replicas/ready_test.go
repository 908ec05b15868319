package replicas

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// TestReadyMeansUseful starts a further replica of another configuration, as the first one of a
// rollout is: it is not ready until that is mended, and says why; the others stay ready.
func TestReadyMeansUseful(t *testing.T) {
	beside(t)
	over(t, both, func(t *testing.T, engine string) {
		t.Parallel() // most of the time it waits
		w := newWorld(t, setup{engine: engine, warn: true})
		late := w.newReplica("D")
		w.configure(late)
		good, err := os.ReadFile(late.config)
		if err != nil {
			t.Fatal(err)
		}
		wrong := strings.Replace(string(good), sharedKey, "another key of sixteen characters", 1)
		if wrong == string(good) {
			t.Fatal("the configuration has no key")
		}
		if err := os.WriteFile(late.config, []byte(wrong), 0o600); err != nil {
			t.Fatal(err)
		}
		late.launch()
		t.Cleanup(func() { late.stop(20 * time.Second) })
		rig.Until(t, recovery, "the replica says what differs", func() string {
			_, text := late.readiness()
			if !strings.Contains(text, "replicas.keys, which signs; compare them") {
				return text
			}
			return ""
		})
		for end := time.Now().Add(size(3*time.Second, 40*time.Second)); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			if status, text := late.readiness(); status != http.StatusServiceUnavailable {
				t.Fatalf("/readyz of a replica that the others refuse = %d %s", status, text)
			}
		}
		for _, r := range w.replicas {
			if !r.isReady() {
				t.Errorf("%s is not ready any more, since another replica differs", r.name)
			}
		}
		if g := late.gauges(); g["mcpbridge_replica_ready"] != 0 || g["mcpbridge_replica_degraded"] != 1 {
			t.Errorf("its metrics say ready %v and degraded %v, want 0 and 1", g["mcpbridge_replica_ready"], g["mcpbridge_replica_degraded"])
		}
		late.stop(20 * time.Second)
		if err := os.WriteFile(late.config, good, 0o600); err != nil {
			t.Fatal(err)
		}
		late.start()
		w.wantMembers(append(w.replicas, late)...)
	})
}

// readiness is what /readyz says; zero while nothing answers.
func (r *replica) readiness() (status int, text string) {
	res, err := r.w.us.Get("http://" + r.admin + "/readyz")
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(body)
}
