package deviations

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// usual is the seed of those deviations that have to meet each line of the differences.
const usual = 75

// drawn returns the deviations that are played, and whether they are the usual ones.
func drawn(t *testing.T) (deviations []deviation, isUsual bool) {
	t.Helper()
	seed, n := rig.Int(t, "SEED", usual), rig.Int(t, "DEVIATIONS", 300)
	return generate(uint64(seed), int(n)), seed == usual && n == 300
}

// A difference is what mcpbridge refuses although a server takes it directly, by patterns.
type difference struct {
	kind   string // explained in docs/quirks.md
	server string
	sides  [sides]string
	answer string
	line   string
}

// fits reports whether a value is one of a pattern: * is any, a,b are two, !a,b all others.
func fits(pattern, value string) bool {
	listed, not := strings.CutPrefix(pattern, "!")
	return pattern == "*" || slices.Contains(strings.Split(listed, ","), value) != not
}

func (w difference) covers(server string, d deviation, got outcome) bool {
	for side, pattern := range w.sides {
		if !fits(pattern, d[side]) {
			return false
		}
	}
	return fits(w.server, server) && fits(w.answer, got.String())
}

// differences reads the list of those that stay, on connections of messages or elsewhere.
func differences(t *testing.T, connections bool) (all []difference) {
	t.Helper()
	text, err := os.ReadFile("testdata/differences.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 0 && !strings.HasPrefix(line, "#") {
			if len(f) != sides+3 {
				t.Fatalf("%q has %d words, want %d", line, len(f), sides+3)
			}
			w := difference{f[0], f[1], [sides]string(f[2 : 2+sides]), f[2+sides], strings.Join(f, " ")}
			if (w.sides[header] == onPipe) == connections {
				all = append(all, w)
			}
		}
	}
	return all
}

// A record is what of the differences was met. Its methods are for several goroutines.
type record struct {
	stays []difference

	mu     sync.Mutex // guards the fields below
	met    map[string]int
	wrong  []string
	both   int // are taken directly and by mcpbridge
	played int
}

// compare judges what a server and mcpbridge before it did with d.
func (r *record) compare(server string, d deviation, direct, got outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	complain := func(format string, args ...any) {
		r.wrong = append(r.wrong, fmt.Sprintf("%s %s: ", server, d)+fmt.Sprintf(format, args...))
	}
	r.played++
	switch {
	case direct.taken && got.taken:
		r.both++
	case direct.taken:
		fitting := 0
		for _, w := range r.stays {
			if w.covers(server, d, got) {
				r.met[w.line]++
				fitting++
			}
		}
		if fitting != 1 {
			complain("taken directly, and mcpbridge answers %v %s; that is in %d lines of testdata/differences.txt", got, got.text, fitting)
		}
	}
	// No server heeds the header of initialize, whose body says what is meant.
	if got.taken && d.isRequest() && d[verb] != "initialize" && slices.Contains(unknown, d[header]) {
		complain("mcpbridge takes a revision that is not known")
	}
	if got.taken && d.isRequest() && !accepted(d, got) {
		complain("mcpbridge answers with %q, which is not accepted", got.form)
	}
	if got.status >= http.StatusInternalServerError && direct.status < http.StatusBadRequest {
		complain("mcpbridge answers %v %s", got, got.text)
	}
}

// accepted reports whether the form of a response is one that d accepts.
func accepted(d deviation, got outcome) bool {
	a := accepts[d[accept]]
	form, _, _ := strings.Cut(got.form, ";")
	return a == "" || a == "*/*" || strings.Contains(a, form)
}

// TestDeviationsThatWorkDirectly plays the deviations against each published server, directly and
// with mcpbridge before it.
func TestDeviationsThatWorkDirectly(t *testing.T) {
	deviations, isUsual := drawn(t)
	r := &record{stays: differences(t, false), met: make(map[string]int)}
	t.Run("servers", func(t *testing.T) {
		for _, s := range all {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				r.play(t, s, deviations, isUsual)
			})
		}
	})
	r.report(t, isUsual)
}

// report tells what is wrong.
func (r *record) report(t *testing.T, isUsual bool) {
	t.Helper()
	for _, w := range r.wrong {
		t.Error(w)
	}
	for _, w := range r.stays {
		if isUsual && r.met[w.line] == 0 {
			t.Errorf("testdata/differences.txt has a line that nothing met: %s", w.line)
		}
	}
	t.Logf("%d of %d are taken directly and by mcpbridge; met %v", r.both, r.played, r.met)
}

// play plays the deviations against one server, and looks at what mcpbridge has counted.
func (r *record) play(t *testing.T, s published, deviations []deviation, isUsual bool) {
	at := s.run(t)
	endpoints, admin := serve(t, fmt.Sprintf("servers:\n  it: {url: %q}\n", at.url))
	through, c := at, newClient(t)
	through.url = endpoints + "it"
	err := rig.Each(len(deviations), 4, func(i int) error {
		d := deviations[i]
		ctx, cancel := context.WithTimeout(t.Context(), briefly)
		direct, err := at.play(ctx, c, d)
		cancel()
		if err != nil {
			t.Logf("directly: %v", err) // it is not taken
		}
		got, err := through.play(t.Context(), c, d)
		r.compare(s.name, d, direct, got)
		return err
	})
	if err != nil {
		t.Errorf("through mcpbridge: %v", err)
	}
	counted := rig.Gauges(t, c, admin)
	for _, q := range []string{"header-revision", "envelope-under-legacy-header", "initialize-under-modern-header", "accept", "stray-envelope", "null-params", "modern-accept"} {
		if n := counted[`mcpbridge_quirks_total{quirk="`+q+`",server="it"}`]; isUsual && n == 0 {
			t.Errorf("mcpbridge has not met %s", q)
		}
	}
}

// TestDifferencesAreExplained holds that each kind of difference is explained in docs/quirks.md,
// and none besides.
func TestDifferencesAreExplained(t *testing.T) {
	text, err := os.ReadFile("../../../docs/quirks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## Differences that stay\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if !ok {
		t.Fatal("docs/quirks.md has no section Differences that stay")
	}
	var explained, want []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|(?: [^|]+ \\|){4}$").FindAllStringSubmatch(section, -1) {
		explained = append(explained, m[1])
	}
	for _, w := range slices.Concat(differences(t, false), differences(t, true)) {
		want = append(want, w.kind)
	}
	slices.Sort(explained)
	slices.Sort(want)
	if want = slices.Compact(want); !slices.Equal(explained, want) {
		t.Errorf("docs/quirks.md explains %q, and testdata/differences.txt has %q", explained, want)
	}
}
