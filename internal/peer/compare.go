package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// comparing bounds the questions to one replica: it is one that people wait for, and may be
// far away.
const comparing = 3 * time.Second

// Compare asks a replica whether it and this one accept each other's requests, and says what
// differs if they don't. now is the clock of this machine. What is known of the replica is not
// heeded, and nothing is noted.
func (g *Group) Compare(ctx context.Context, to replicas.Replica, now func() time.Time) replicas.Compared {
	ctx, cancel := context.WithTimeout(ctx, comparing)
	defer cancel()
	c := replicas.Compared{Replica: to}
	differs := func(what, format string, args ...any) {
		c.Differs = append(c.Differs, replicas.Difference{What: what, Text: fmt.Sprintf(format, args...)})
	}
	a, err := g.helloAt(ctx, to, now, 0)
	if err != nil {
		c.Differs = append(c.Differs, g.unreached(ctx, to.Addr, err))
		return c
	}
	c.Clock = a.clock.Round(time.Second / 2) // it is no better known
	if apart := a.clock.Abs(); apart > replicas.ClockTolerance {
		differs(replicas.DiffersClock, "its clock is %v %s the one here; have NTP set both: over %v apart, requests are refused", apart.Round(time.Second), direction(a.clock), lifetime)
		if a.header.Get(Header) != "" { // what else it says of an envelope that is made for its clock
			if again, err := g.helloAt(ctx, to, now, a.clock); err == nil {
				a = again
			}
		}
	}
	said, ours := g.proves(a)
	switch refusal := a.header.Get(Header); {
	case refusal == anew:
		differs(replicas.DiffersTLS, "it does not accept the certificate of replicas.tls any more; compare client_ca there")
	case strings.HasPrefix(refusal, "v="):
		differs(replicas.DiffersVersion, "it does not understand the requests of this version; compare the versions of mcpbridge")
	case refusal != "":
		differs(replicas.DiffersKeys, "it does not have the first of replicas.keys, which signs; compare them")
	case ours && to.Instance != "" && said.Instance != to.Instance:
		differs(replicas.DiffersAddress, "replica %s answers at its address; compare replicas.advertise there", said.Instance)
	case ours:
		c.Instance, c.Version, c.Revision, c.Draining = said.Instance, said.Version, said.Revision, said.Draining
	case a.header.Get(proofHeader) != "":
		differs(replicas.DiffersKeys, "it signs with a key that replicas.keys does not have; compare them")
	case !g.secure && replicas.SpeaksTLS(ctx, to.Addr):
		differs(replicas.DiffersTLS, "it wants TLS, and replicas.tls is not set here")
	default:
		differs(replicas.DiffersAddress, "what answers there is no replica: HTTP status %d", a.status)
	}
	return c
}

// direction says how a clock differs that is ahead by d.
func direction(d time.Duration) string {
	if d < 0 {
		return "behind"
	}
	return "ahead of"
}

// An answer is that to a hello.
type answer struct {
	envelope *Envelope
	status   int
	header   http.Header
	text     []byte
	clock    time.Duration // by which that of the other is ahead
}

// helloAt asks who is at the address of a replica, with an envelope for a clock that is ahead of now.
func (g *Group) helloAt(ctx context.Context, to replicas.Replica, now func() time.Time, ahead time.Duration) (*answer, error) {
	t := newGate(g, replicas.Replica{Addr: to.Addr, Revision: to.Revision, TLS: to.TLS}) // whoever it is
	r, err := http.NewRequestWithContext(context.WithValue(ctx, gateKey{}, pass{t, true}), http.MethodGet, g.URL(t.to, HelloPath), nil)
	if err != nil {
		return nil, err
	}
	e, sent := new(Envelope), now()
	resp, err := g.inEither(t.to, r, func(r *http.Request) (*http.Response, error) {
		g.sealUntil(e, t.to, r, sent.Add(ahead+lifetime))
		return g.client.RoundTrip(r)
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // it was read, or is of no use
	a := &answer{envelope: e, status: resp.StatusCode, header: resp.Header}
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil { // whole seconds
		between := sent.Add(now().Sub(sent) / 2)
		a.clock = date.Add(time.Second / 2).Sub(between)
	}
	a.text, err = io.ReadAll(io.LimitReader(resp.Body, maxHello))
	return a, err
}

// unreached says why there is no answer.
func (g *Group) unreached(ctx context.Context, addr string, err error) replicas.Difference {
	of := func(what, format string, args ...any) replicas.Difference {
		return replicas.Difference{What: what, Text: fmt.Sprintf(format, args...)}
	}
	switch {
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return of(replicas.DiffersTLS, "its certificate is not accepted here; compare client_ca and server_name of replicas.tls: %v", err)
	case errors.As(err, new(tls.RecordHeaderError)):
		return of(replicas.DiffersTLS, "it is without TLS, and replicas.tls is set here")
	case replicas.IsTLSRefusal(err):
		return of(replicas.DiffersTLS, "it does not accept the certificate of replicas.tls; compare client_ca there: %v", err)
	case !g.secure && replicas.SpeaksTLS(ctx, addr):
		return of(replicas.DiffersTLS, "it wants TLS, and replicas.tls is not set here")
	}
	return of(replicas.DiffersAnswer, "it does not answer; see whether this machine may connect there: %v", err)
}
