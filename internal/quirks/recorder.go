package quirks

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
)

// MaxClients bounds the clients that a Recorder tells apart: their names are whatever they say.
const MaxClients = 256

// Other stands for all clients beyond MaxClients.
const Other = "other"

// Options configure a Recorder.
type Options struct {
	// Server is the server's name, for logs and metrics.
	Server string
	// Off reports whether a quirk of this name is not tolerated. Nil means that all are.
	Off func(name string) bool
	// Count counts a quirk that was met; nil counts nothing.
	Count func(server, quirk string)
	// Logger is told once of each quirk of each client; nil discards.
	Logger *slog.Logger
}

// A Recorder says which quirks are tolerated on the way to one server, and remembers those that
// were met. A nil Recorder tolerates all and remembers nothing. Its methods are safe for
// concurrent use.
type Recorder struct {
	opts Options
	off  [end]bool

	mu      sync.Mutex // guards the fields below; a leaf
	clients map[string]bool
	met     map[metBy]int64
}

// A metBy is a quirk of one client; client is empty if the server has it.
type metBy struct {
	quirk  Quirk
	client string
}

// New returns a Recorder that has met nothing.
func New(o Options) *Recorder {
	r := &Recorder{opts: o, clients: make(map[string]bool), met: make(map[metBy]int64)}
	for q := range r.off {
		r.off[q] = o.Off != nil && o.Off(table[q].Name)
	}
	if r.opts.Logger == nil {
		r.opts.Logger = slog.New(slog.DiscardHandler)
	}
	return r
}

// Tolerates reports whether q is tolerated.
func (r *Recorder) Tolerates(q Quirk) bool { return r == nil || !r.off[q] }

// Met says that q was met and tolerated. client is the name and version of the client; it is
// not heeded if it is a quirk of servers.
func (r *Recorder) Met(q Quirk, client string) {
	if r == nil {
		return
	}
	if r.opts.Count != nil {
		r.opts.Count(r.opts.Server, q.String())
	}
	if client, first := r.note(q, client); first {
		r.log(q, client)
	}
}

// note counts a meeting, and reports whether it is the first one. It returns the name under
// which the client is known.
func (r *Recorder) note(q Quirk, client string) (known string, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if table[q].Side == Server {
		client = ""
	} else {
		client = r.knownLocked(cmp.Or(client, "unnamed"))
	}
	m := metBy{q, client}
	r.met[m]++
	return client, r.met[m] == 1
}

// knownLocked returns the name under which a client is known.
func (r *Recorder) knownLocked(client string) string {
	if r.clients[client] {
		return client
	}
	if len(r.clients) == MaxClients {
		return Other
	}
	r.clients[client] = true
	return client
}

func (r *Recorder) log(q Quirk, client string) {
	d := q.Describe()
	attrs := []any{"upstream", r.opts.Server, "quirk", d.Name, "rule", d.ID}
	if d.Side == Server {
		r.opts.Logger.Info("server deviates from the protocol, which is tolerated", append(attrs, "breaks", d.Section)...)
		return
	}
	r.opts.Logger.Info("client deviates from the protocol, which is tolerated", append(attrs, "client", client, "breaks", d.Section)...)
}

// A Meeting says how often a quirk was met.
type Meeting struct {
	Quirk  Quirk
	Client string // empty if it is the server's
	Count  int64
}

// Meetings returns which quirks were met, in the order of the table.
func (r *Recorder) Meetings() []Meeting {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Meeting
	for m, n := range r.met {
		all = append(all, Meeting{m.quirk, m.client, n})
	}
	slices.SortFunc(all, func(a, b Meeting) int {
		return cmp.Or(cmp.Compare(a.Quirk, b.Quirk), cmp.Compare(a.Client, b.Client))
	})
	return all
}
