package admin

import (
	"encoding/json"
	"net/http"
)

// A State says how the gateway stands with a server.
type State string

// The states. A server is Untried only until the first attempt has ended.
const (
	Untried State = "untried"
	Up      State = "up"
	Down    State = "down" // the last attempt failed; it is being retried
	Idle    State = "idle" // it is started when the first client of this replica asks
)

// A Server is what the gateway knows of one server.
type Server struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Reason says why the server is down, fit to be shown; else empty.
	Reason string `json:"reason,omitempty"`
}

// A Snapshot is the state of the process at one moment.
type Snapshot struct {
	Draining bool     // the process is about to end
	Joining  bool     // other replicas have not heard of this one yet, or refuse it
	Settled  bool     // all servers of the first configuration were tried
	Servers  []Server // in the order of the configuration
	Replicas *Replicas
}

// Replicas is what the process knows of other replicas; nil if it is alone.
type Replicas struct {
	Self    string `json:"self"`
	Members int    `json:"members"`
	// Engine is "ok", or since when it is away: what it said last stands, and the process is
	// ready.
	Engine string `json:"engine"`
	// Degraded has why the process can't work with the others as it should: until it was ready
	// once, it is not for some of these reasons. Empty if all is well.
	Degraded []string `json:"degraded,omitempty"`
}

// A Source tells the state of the process. It is asked once per request, from
// any goroutine, and must not block.
type Source interface {
	Snapshot() Snapshot
}

func healthz(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, statusOnly{"ok"})
}

type readyz struct {
	source Source
	guard  *guard
	reload func() any // nil if nobody knows
}

// ServeHTTP implements [http.Handler].
func (h readyz) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := h.source.Snapshot()
	status, code := s.readiness()
	if !h.guard.wanted().allows(r) {
		answer(w, code, statusOnly{status})
		return
	}
	body := struct {
		Status   string    `json:"status"`
		Servers  []Server  `json:"servers"`
		Replicas *Replicas `json:"replicas,omitempty"`
		Reload   any       `json:"reload,omitempty"`
	}{Status: status, Servers: s.Servers, Replicas: s.Replicas}
	if h.reload != nil {
		body.Reload = h.reload()
	}
	answer(w, code, body)
}

// statusOnly is what everybody may know.
type statusOnly struct {
	Status string `json:"status"`
}

func (s Snapshot) readiness() (status string, code int) {
	if s.Draining {
		return "draining", http.StatusServiceUnavailable
	}
	if s.Joining {
		return "joining", http.StatusServiceUnavailable
	}
	for _, server := range s.Servers {
		if server.State == Untried && !s.Settled {
			return "starting", http.StatusServiceUnavailable
		}
	}
	return "ready", http.StatusOK
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	// An error means that the client has gone; there is nobody to tell.
	_ = json.NewEncoder(w).Encode(body)
}
