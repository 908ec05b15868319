package admin

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// refusals counts refused credentials.
type refusals struct {
	mcp.NoMetrics
	n int
}

func (c *refusals) Refused(server, reason string) {
	if server == "" && reason == refusedToken {
		c.n++
	}
}

// Who guesses tokens is counted, logged and slowed; who has the right one is not.
func TestHardeningWrongTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, counts := new(bytes.Buffer), new(refusals)
		h, err := NewHandler(Options{
			Source: fixed{}, Metrics: http.NotFoundHandler(), Token: "the-admin-token-1", Reload: http.NotFoundHandler(),
			Counts: counts, Logger: slog.New(slog.NewTextHandler(log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		send := func(path, from, token string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			if path == "/reload" {
				r.Method = http.MethodPost
			}
			r.RemoteAddr, r.Header = from+":4242", http.Header{"Authorization": {"Bearer " + token}}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		got := map[int]int{}
		for range 2000 {
			got[send("/reload", "192.0.2.1", "a-guess").Code]++
		}
		if got[http.StatusUnauthorized] != wrongBurst || got[http.StatusTooManyRequests] != 2000-wrongBurst || counts.n != 2000 {
			t.Errorf("2,000 wrong tokens = %v, %d counted, want 401 for %d, 429 for the others, all counted", got, counts.n, wrongBurst)
		}
		if n := strings.Count(log.String(), "wrong token"); n != 1 || strings.Contains(log.String(), "a-guess") {
			t.Errorf("%d lines, want one, without the token: %s", n, log)
		}
		if w := send("/metrics", "192.0.2.1", "wrong"); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" {
			t.Errorf("another path = %d, %v, want 429 with Retry-After", w.Code, w.Header())
		}
		for what, w := range map[string]*httptest.ResponseRecorder{
			"the right one": send("/reload", "192.0.2.1", "the-admin-token-1"), "whether it is well": send("/healthz", "192.0.2.1", "wrong"),
			"another address": send("/reload", "192.0.2.2", "wrong"),
		} {
			if w.Code == http.StatusTooManyRequests {
				t.Errorf("%s = %d", what, w.Code)
			}
		}
		time.Sleep(11 * time.Second)
		if w := send("/reload", "192.0.2.1", "wrong"); w.Code != http.StatusUnauthorized || strings.Count(log.String(), "times=") != 1 {
			t.Errorf("later = %d, want 401, and a line with the number: %s", w.Code, log)
		}
	})
}

// The form of the page is no other way to guess, neither the token nor the code of a link.
func TestHardeningWrongTokensOfTheForm(t *testing.T) {
	for _, member := range []string{"token", "code"} {
		log, counts := new(bytes.Buffer), new(refusals)
		g := newGuard(Options{Token: "the-admin-token-1", Counts: counts, Logger: slog.New(slog.NewTextHandler(log, nil))})
		send := func(member, text string) int {
			r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader(`{"`+member+`":"`+text+`"}`))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			g.login(w, r)
			return w.Code
		}
		got := map[int]int{}
		for range 200 {
			got[send(member, "a-guess")]++
		}
		if got[http.StatusTooManyRequests] < 100 || got[http.StatusOK] != 0 || counts.n != 200 {
			t.Errorf("200 times a wrong %s = %v, %d counted, want most of them 429", member, got, counts.n)
		}
		if n := strings.Count(log.String(), "\n"); n != 1 || strings.Contains(log.String(), "a-guess") {
			t.Errorf("200 times a wrong %s logs %d lines, want one, without the %s: %s", member, n, member, log)
		}
		code, _ := g.links.add()
		if token, link := send("token", "the-admin-token-1"), send("code", code); token != http.StatusOK || link != http.StatusOK {
			t.Errorf("after wrong ones the right token = %d, a good link = %d", token, link)
		}
	}
}
