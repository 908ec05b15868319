package node

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// differences asks as a Node that does not join, whose clock is ahead. There is a line for each
// that answers.
func differences(t *testing.T, o Options, ahead time.Duration) []string {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	n, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	c := n.Compare(t.Context(), func() time.Time { return time.Now().Add(ahead) })
	if c.Away != nil {
		return []string{c.Away.Error()}
	}
	var lines []string
	for _, m := range c.Members {
		var what []string
		for _, d := range m.Differs {
			what = append(what, d.What)
		}
		lines = append(lines, m.Addr+" "+strings.Join(what, " "))
	}
	return lines
}

func TestCompareByNames(t *testing.T) {
	t.Parallel()
	addrs := freeAddrs(t, 3) // nobody is at the last one
	const key = "0123456789abcdef"
	joinAs(t, Options{Peers: "dns://" + addrs[0], Keys: []string{key}, Listen: addrs[0]})
	server, client := material(t, "replicas.example")
	joinAs(t, Options{Peers: "dns://" + addrs[1], Keys: []string{key}, Listen: addrs[1], ServerTLS: server, ClientTLS: client})
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	stranger := web.Listener.Addr().String()
	all := Options{Peers: "dns://" + strings.Join(append(addrs, stranger), ","), Keys: []string{key}}
	overTLS, otherKeys := all, all
	overTLS.ClientTLS, otherKeys.Keys = client, []string{"fedcba9876543210"}
	for _, tt := range []struct {
		name  string
		o     Options
		ahead time.Duration
		want  []string
	}{
		{"without TLS", all, 0, []string{addrs[0] + " ", addrs[1] + " tls", stranger + " address"}},
		{"over TLS", overTLS, 0, []string{addrs[0] + " tls", addrs[1] + " ", stranger + " tls"}},
		{"with other keys", otherKeys, 0, []string{addrs[0] + " keys", addrs[1] + " tls", stranger + " address"}},
		{"at another time", all, 20 * time.Second, []string{addrs[0] + " clock", addrs[1] + " tls", stranger + " clock address"}},
	} {
		if got := differences(t, tt.o, tt.ahead); strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
	if got := differences(t, Options{Peers: "dns://" + addrs[2], Keys: []string{key}}, 0); len(got) != 0 {
		t.Errorf("at a name where nobody answers: %q", got)
	}
}
