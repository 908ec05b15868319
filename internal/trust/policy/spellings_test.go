package policy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path"
	"strconv"
	"strings"
	"testing"
)

// deniedURIs are what the policy of the tests below denies.
var deniedURIs = []Rule{{Deny: true, Resources: []string{"file:///etc/passwd", "file:///secret/*", "https://h.example/s/*", "http://127.0.0.1/x"}}}

// A target is what a program makes of a URI.
type target struct{ Scheme, Host, Path string }

// isDenied reports whether a target is one of deniedURIs.
func (t target) isDenied() bool {
	way := path.Clean("/" + t.Path)
	switch t.Scheme {
	case "file":
		return way == "/etc/passwd" || strings.HasPrefix(way, "/secret/")
	case "https":
		return strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(t.Host), ":443"), ".") == "h.example" && strings.HasPrefix(way, "/s/")
	case "http":
		return strings.TrimSuffix(strings.ToLower(t.Host), ":80") == "127.0.0.1" && way == "/x"
	}
	return false
}

// programs read URIs, one JSON string a line, and write lists of targets.
var programs = map[string][]string{
	"node": {"node", "-e", `
const {fileURLToPath} = require("url");
require("readline").createInterface({input: process.stdin}).on("line", l => {
  const out = [];
  try {
    const u = new URL(JSON.parse(l)), t = p => out.push({Scheme: u.protocol.slice(0, -1), Host: u.host, Path: p});
    t(u.pathname);
    try { t(decodeURIComponent(u.pathname)) } catch {}
    if (u.protocol == "file:") try { t(fileURLToPath(u)) } catch { u.host = ""; try { t(fileURLToPath(u)) } catch {} }
  } catch {}
  console.log(JSON.stringify(out));
});`},
	"python": {"python3", "-c", `
import json, sys
from urllib.parse import urlsplit, unquote
from urllib.request import url2pathname
for l in sys.stdin:
    out = []
    try:
        u = urlsplit(json.loads(l))
        host = u.hostname or ""
        if u.port: host += ":%d" % u.port
        for p in (u.path, unquote(u.path), url2pathname(unquote(u.path))):
            out.append({"Scheme": u.scheme, "Host": host, "Path": p.encode("utf-8", "replace").decode()})
    except Exception:
        pass
    print(json.dumps(out))
`},
}

// goTargets is what net/url makes of a URI.
func goTargets(uri string) []target {
	u, err := url.Parse(uri)
	if err != nil || u.Opaque != "" {
		return nil
	}
	return []target{{u.Scheme, u.Host, u.Path}, {u.Scheme, u.Host, u.EscapedPath()}}
}

// A speller writes URIs in other ways.
type speller struct{ *rand.Rand }

func (s speller) pick(of ...string) string { return of[s.IntN(len(of))] }

// escape encodes some characters, some of them twice.
func (s speller) escape(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		switch n := s.IntN(12); {
		case n == 0:
			fmt.Fprintf(&b, "%%%02x", c)
		case n == 1:
			fmt.Fprintf(&b, "%%25%02X", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// spell writes one of the denied URIs.
func (s speller) spell() string {
	scheme, host, way := s.pick("file", "https", "http"), "", ""
	switch scheme {
	case "file":
		host, way = s.pick("", "", "", "localhost", "x", "h.example", "C:"), s.pick("etc/passwd", "secret/a", "secret/a/b")
	case "https":
		host, way = s.pick("h.example", "H.Example", "h。example", "h%2eexample", "ｈ.example", "h.example.", "u@h.example", "u:p@h.example"), "s/a"
		host += s.pick("", "", "", ":443", ":0443", ":", ":00443")
	case "http":
		host, way = s.pick("127.0.0.1", "2130706433", "0x7f.1", "127.1", "0177.0.0.01", "127.0.0.1."), "x"
	}
	segments := strings.Split(way, "/")
	for range s.IntN(4) {
		at := s.IntN(len(segments) + 1)
		more := [][]string{{"p", ".."}, {"."}, {""}, {"p", "%2e%2e"}, {"p", ".%2E"}, {"%2e"}, {"p", "%252e%252e"}, {"%252e%252e", ".."}, {`a\b`, ".."}, {"..", ""}, {"p", "q", "..", ".."}}[s.IntN(11)]
		segments = append(segments[:at:at], append(more, segments[at:]...)...)
	}
	var b strings.Builder
	for _, g := range segments {
		if s.IntN(3) == 0 {
			g = s.escape(g)
		}
		b.WriteString(s.pick("/", "/", "/", "/", "/", `\`, "//", "%2f", "%5c", "%252f") + g)
	}
	way = b.String()
	if s.IntN(10) == 0 {
		way = strings.TrimLeft(way, `/\`)
	}
	if s.IntN(4) == 0 {
		scheme = strings.ToUpper(scheme)
	}
	return s.pick("", "", "", "", " ", "\t") + scheme + s.pick(":", ":", ":", ":\t") + s.pick("//", "//", "//", "//", "/", "", `\\`, `/\`, "///", "////") + host + way + s.pick("", "", "", "?q=/../..", "#f", ";p", "/", "/.", " ", "?", "%3f", "|")
}

// ask has a program read URIs; false if it is not here.
func ask(t *testing.T, args []string, uris []string) ([][]target, bool) {
	t.Helper()
	if _, err := exec.LookPath(args[0]); err != nil {
		t.Logf("without %s: %v", args[0], err)
		return nil, false
	}
	var in strings.Builder
	for _, u := range uris {
		text, _ := json.Marshal(u)
		in.Write(append(text, '\n'))
	}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Stdin = strings.NewReader(in.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", args[0], err)
	}
	var all [][]target
	lines := bufio.NewScanner(strings.NewReader(string(out)))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var found []target
		if err := json.Unmarshal(lines.Bytes(), &found); err != nil {
			t.Fatal(err)
		}
		all = append(all, found)
	}
	if len(all) != len(uris) {
		t.Fatalf("%s answers %d of %d URIs", args[0], len(all), len(uris))
	}
	return all, true
}

// refuses reports whether a policy denies reading a URI, or whether it can't be read.
func refuses(p *Policy, uri string) bool {
	text, _ := json.Marshal(uri)
	op, err := Read("resources/read", []byte(`{"uri":`+string(text)+`}`), nil)
	return err != nil || !p.Decide(&Caller{}, &op).Allowed
}

// What Node.js, Python or Go take for a denied URI is denied, however it is written. The
// number of spellings is that of URI_SPELLINGS.
func TestSpellingsOfDeniedURIs(t *testing.T) {
	n := 4_000
	if text := os.Getenv("URI_SPELLINGS"); text != "" {
		n, _ = strconv.Atoi(text)
	}
	seed := rand.Uint64()
	s := speller{rand.New(rand.NewPCG(seed, 1))}
	p, hits, failed := New(true, deniedURIs), map[string]int{}, 0
	for done := 0; done < n; done += 10_000 {
		uris := make([]string, min(10_000, n-done))
		for i := range uris {
			uris[i] = s.spell()
		}
		answers := map[string][][]target{"go": make([][]target, len(uris))}
		for i, u := range uris {
			answers["go"][i] = goTargets(u)
		}
		for name, args := range programs {
			if got, ok := ask(t, args, uris); ok {
				answers[name] = got
			}
		}
		for name, got := range answers {
			for i, targets := range got {
				for _, to := range targets {
					if !to.isDenied() {
						continue
					}
					if hits[name]++; !refuses(p, uris[i]) && failed < 20 {
						failed++
						t.Errorf("seed %d: %q is allowed, and %s takes it for %+v", seed, uris[i], name, to)
					}
				}
			}
		}
	}
	t.Logf("%d spellings; denied targets: %v", n, hits)
	for name, count := range hits {
		if count < n/100 {
			t.Errorf("%s was led to a denied target %d times by %d spellings, want more", name, count, n)
		}
	}
}

// The spellings by which deny was passed.
func TestKnownSpellingsOfDeniedURIs(t *testing.T) {
	p := New(true, append(deniedURIs, Rule{Deny: true, Resources: []string{"file://srv/share/*", "https://*.wild.example/*", "*://other.example/x"}}))
	for uri, want := range map[string]bool{
		"file:/etc/passwd": true, "file:etc/passwd": true, "file:/pub/../etc/passwd": true, "file://x/etc/passwd": true, `file:\\\etc\passwd`: true,
		"https:/h.example/s/a": true, "https:h.example/s/a": true, "https://h.example:0443/s/a": true, "https://h。example/s/a": true, "http://2130706433/x": true,
		"file:/share/a": true, "https:/u@h.example://s/a": true, "https:a.wild.example/x": true, "https://other.example/x": true, "file:///pub/%252e%252e/../secret/a": true,
		"file:///etc/passwd2": false, "file:///etc": false, "https://h.example/t": false, "https://h.example:8443/s/a": false, "http://h.example/s/a": false,
		"note://etc/passwd": false, "https://wild.example/x": false,
	} {
		if got := refuses(p, uri); got != want {
			t.Errorf("%q is denied: %v, want %v", uri, got, want)
		}
	}
}

// What is written as most URIs are, and is none of those denied, stays allowed.
func TestOrdinaryURIsAreNotDenied(t *testing.T) {
	s := speller{rand.New(rand.NewPCG(1, 2))}
	p := New(true, deniedURIs)
	for range 10_000 {
		uri := s.pick("file:///", "file:///home/ada/", "https://docs.example/", "https://h.example/t/", "http://127.0.0.1:8080/", "note://", "https://h.example.org/s/", "file:///etc/", "custom:") +
			s.pick("a", "b%20c", "ü", "x.y", "open", "S") + s.pick("", "/", "/x", "?q=secret", "#s", "/passwd/x", ".txt")
		if refuses(p, uri) {
			t.Errorf("%q is denied", uri)
		}
	}
}

func FuzzReadings(f *testing.F) {
	for _, uri := range []string{"file:etc/passwd", "https://h:0443/x?y#z", `http:\\u@h\..\%2e`, "ws://[::1]/", "file://*"} {
		f.Add(uri)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		for _, r := range readings(uri) {
			if r != Fold(r) || !strings.Contains(r, "://") {
				t.Errorf("the readings of %q have %q", uri, r)
			}
		}
		standardPattern(uri)
	})
}
