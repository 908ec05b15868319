package replicas

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// TestReadyMeansUseful starts a further replica of another configuration, or at another time, as the
// first one of a rollout is: it is not ready until that is mended, and says why; the others stay
// ready, and sessions behind the balancer go on.
func TestReadyMeansUseful(t *testing.T) {
	beside(t)
	over(t, both, func(t *testing.T, engine string) {
		t.Parallel() // most of the time it waits
		w := newWorld(t, setup{engine: engine, warn: true})
		for range faultRounds(t) {
			c := w.gather(t, nil)
			for _, m := range w.mistakes(t) {
				w.startsWrong(t, m)
			}
			c.wantUnharmed(t)
		}
	})
}

// A mistake is what is wrong with a replica.
type mistake struct {
	name string
	late *replica
	why  string // in /readyz
}

// mistakes returns replicas that the others refuse.
func (w *world) mistakes(t *testing.T) (all []mistake) {
	t.Helper()
	add := func(name, why string, spoil func(r *replica)) {
		late := w.newReplica("D")
		spoil(late)
		all = append(all, mistake{name, late, why})
	}
	replace := func(from, to string) func(r *replica) {
		return func(r *replica) {
			r.edit = func(config string) string {
				if !strings.Contains(config, from) {
					t.Fatalf("the configuration has no %q", from)
				}
				return strings.Replace(config, from, to, 1)
			}
		}
	}
	add("other keys", "replicas.keys, which signs; compare them", replace(sharedKey, "another key of sixteen characters"))
	add("another password of the engine", "refuses who asks; compare the user and password in replicas.engine", replace("open%20sesame", "open%20barley"))
	cert := w.certificates(t)
	add("TLS", "it is without TLS, and replicas.tls is set here", replace("  advertise:", cert.lines("")+"\n  advertise:"))
	for _, ahead := range []string{"20s", "-20s"} {
		add("a clock that is "+ahead+" ahead", "its clock is ", func(r *replica) { r.setClock(ahead) })
	}
	return all
}

// startsWrong starts such a replica, and wants it not to be ready before it is mended.
func (w *world) startsWrong(t *testing.T, m mistake) {
	t.Helper()
	late := m.late
	w.configure(late)
	late.launch()
	t.Cleanup(func() { late.stop(time.Minute) })
	rig.Until(t, recovery, m.name+": the replica says what differs", func() string {
		if _, text := late.readiness(); !strings.Contains(text, m.why) {
			return text
		}
		return ""
	})
	for end := time.Now().Add(size(3*time.Second, 40*time.Second)); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if status, text := late.readiness(); status != http.StatusServiceUnavailable {
			t.Fatalf("%s: /readyz of a replica that the others refuse = %d %s", m.name, status, text)
		}
	}
	for _, r := range w.replicas {
		if !r.isReady() {
			t.Errorf("%s: %s is not ready any more, since another replica differs", m.name, r.name)
		}
	}
	if g := late.gauges(); g["mcpbridge_replica_ready"] != 0 || g["mcpbridge_replica_degraded"] != 1 {
		t.Errorf("%s: its metrics say ready %v and degraded %v, want 0 and 1", m.name, g["mcpbridge_replica_ready"], g["mcpbridge_replica_degraded"])
	}
	late.stop(time.Minute)
	late.edit, late.program, late.env = nil, w.replicas[0].program, nil
	w.configure(late)
	late.start()
	w.wantMembers(append(slices.Clone(w.replicas), late)...)
	late.stop(time.Minute)
	w.wantMembers(w.replicas...)
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

// TestAServerThatOneLacks has one replica of three not have a server yet, which is used by sessions
// through the balancer: none of them meets a 404, nor any other error.
func TestAServerThatOneLacks(t *testing.T) {
	beside(t)
	over(t, both, func(t *testing.T, engine string) {
		t.Parallel() // most of the time it waits
		w := newWorld(t, setup{engine: engine, warn: true})
		late := w.replicas[0]
		for _, f := range []*fixture{w.legacy, w.modern} {
			w.setup.servers += "  new-" + f.name + ": {url: http://" + f.addr + "/mcp}\n"
		}
		for _, r := range w.others(late) { // as a rollout does, one after the other
			r.stop(time.Minute)
			w.configure(r)
			r.start()
			w.wantMembers(w.replicas...)
		}
		door := w.door()
		for range faultRounds(t) {
			if err := each(30, func(i int) error {
				server := []string{"new-legacy", "new-modern"}[i%2]
				s, err := w.open(t.Context(), door, server, nil)
				if err != nil {
					return err
				}
				for range size(6, 30) {
					if err := fails(s.mark(t.Context(), door, "lacking")); err != nil {
						return err
					}
				}
				if err := fails(w.mark(t.Context(), door.url(server), "modern")); err != nil {
					return err
				}
				s.end(t.Context(), door)
				return nil
			}); err != nil {
				t.Error(err)
			}
		}
		if a := w.mark(t.Context(), door.url("nobody-has-this"), "none"); a.status != http.StatusNotFound {
			t.Errorf("a server that nobody has = %d %s, want 404", a.status, a.text)
		}
	})
}
