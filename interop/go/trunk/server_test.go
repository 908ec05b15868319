package trunk

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/ledger"
	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// A server is interop/legacy-go: a process of ours over HTTP, mcpbridge's child
// over stdio.
type server struct {
	t      testing.TB
	http   *http.Client
	stdio  bool
	addr   string // of /admin, and of /mcp unless stdio
	args   []string
	ledger string // file
	refuse string // file
	own    *process.Process
}

// entry and subscriptions are what legacy-go writes.
type (
	entry         = ledger.Entry
	subscriptions struct {
		PID      int
		Total    int
		URIs     map[string]int
		Sessions map[string][]string
	}
)

func item(i int) string { return fmt.Sprintf("res://item/%02d", i) }

func newServer(t testing.TB, dir string, setup setup, c *http.Client) *server {
	t.Helper()
	s := &server{t: t, http: c, stdio: setup.stdio, addr: rig.FreeAddr(t),
		ledger: filepath.Join(dir, "ledger"), refuse: filepath.Join(dir, "refuse")}
	flag := "-http"
	if s.stdio {
		flag = "-admin"
	}
	s.args = []string{flag + "=" + s.addr, "-ledger=" + s.ledger, "-refuse=" + s.refuse}
	if setup.eventIDs {
		s.args = append(s.args, "-event-ids")
	}
	if !s.stdio {
		s.start()
	}
	return s
}

func (s *server) start() {
	s.t.Helper()
	var err error
	if s.own, err = process.Start("legacy-go", nil, append([]string{binaries.Server}, s.args...)...); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), process.StartTime)
	defer cancel()
	if err := s.own.Ready(ctx, s.url("/admin/subscriptions"), http.StatusOK); err != nil {
		s.own.Kill()
		s.t.Fatal(err)
	}
}

func (s *server) close() {
	if s.own != nil {
		s.own.Kill()
	}
}

func (s *server) pid() (int, error) {
	res, err := s.http.Get(s.url("/admin/subscriptions"))
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	var now subscriptions
	err = json.NewDecoder(res.Body).Decode(&now)
	return now.PID, err
}

// kill ends the server as kill -9 does.
func (s *server) kill() (pid int) {
	s.t.Helper()
	pid, err := s.pid()
	if err != nil {
		s.t.Fatal(err)
	}
	if s.stdio {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			s.t.Fatalf("killing the child: %v", err)
		}
	} else {
		s.own.Kill()
	}
	s.http.CloseIdleConnections()
	return pid
}

// restart kills the server and starts it anew after a while, unless that is
// mcpbridge's task. It returns when the new one is there for us.
func (s *server) restart(down time.Duration) {
	s.t.Helper()
	before := s.kill()
	if !s.stdio {
		time.Sleep(down)
		s.start()
		return
	}
	rig.Until(s.t, 2*time.Minute, "mcpbridge starts the child anew", func() string {
		if now, err := s.pid(); err != nil || now == before {
			return fmt.Sprintf("pid %d, %v", now, err)
		}
		return ""
	})
}

// cut ends the GET streams alone, and refuses new ones for as long as hold.
func (s *server) cut(how string, hold time.Duration) {
	s.t.Helper()
	var cut struct{ Streams int }
	s.tell("cut", url.Values{"how": {how}, "hold": {hold.String()}}, &cut)
}

// touch makes a new version of each URI so many times.
func (s *server) touch(times int, uris ...string) []entry {
	s.t.Helper()
	touched, err := s.admin().Touch(times, uris...)
	if err != nil {
		s.t.Fatal(err)
	}
	return touched
}

func (s *server) change(kind string) {
	s.t.Helper()
	s.tell("change", url.Values{"kind": {kind}}, new(struct{}))
}

func (s *server) admin() ledger.Admin { return ledger.Admin{Client: s.http, Addr: s.addr} }

func (s *server) tell(command string, values url.Values, into any) {
	s.t.Helper()
	if err := s.admin().Tell(http.MethodPost, command, values, into); err != nil {
		s.t.Fatal(err)
	}
}

// refuseThese takes effect with the next attempt to subscribe.
func (s *server) refuseThese(uris ...string) {
	s.t.Helper()
	if err := os.WriteFile(s.refuse, []byte(strings.Join(uris, "\n")), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// entries reads the ledger of all the processes that there were.
func (s *server) entries() []entry {
	s.t.Helper()
	return ledger.Read(s.t, s.ledger)
}

func (s *server) url(path string) string { return "http://" + s.addr + path }

// request sends an HTTP request that must be answered with 200.
func request(t testing.TB, c *http.Client, method, url string, header http.Header, body []byte) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		req.Header = header
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s %s = %d %s, %v", method, url, res.StatusCode, text, err)
	}
	return text
}
