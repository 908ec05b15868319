package trunk

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/listen"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

const (
	readers      = 5
	stalled      = 5
	burst        = 2000
	bursts       = 5 // in one run: one fills the stalled sockets, the rest find them full
	runs         = 5 // of each kind: what mcpbridge holds is level after a few
	writeTimeout = 2 * time.Second
)

// bulkyID makes every frame of a stream 2 KiB long, so that bursts fill the
// buffers between mcpbridge and a client that does not read.
func bulkyID(i int) string { return fmt.Sprintf(`"%d %s"`, i, strings.Repeat("x", 2<<10)) }

// TestM2L35StalledReaders has five of ten clients stop reading under bursts of
// updates. The others are told of all, mcpbridge's memory hardly grows, and the
// stalled streams are gone after the write time-out.
func TestM2L35StalledReaders(t *testing.T) {
	w := newStalledWorld(t)
	without, with := w.stalledRuns()
	grown := (held(with) - held(without)) / stalled / (1 << 20)
	if t.Logf("heap: %.2f MiB more for a stalled stream", grown); grown >= 1 {
		t.Errorf("mcpbridge grows by %.2f MiB for a stalled stream, want less than 1", grown)
	}
	if n := w.gauges()[`mcpbridge_limits_hit_total{limit="write_timeout",server="legacy"}`]; n != float64(len(with)*stalled) {
		t.Errorf("%v streams were counted as stalled, want %d", n, len(with)*stalled)
	}
}

// BenchmarkBesideStalledReaders tells how much later the readers hear of updates
// beside five that have stopped reading.
func BenchmarkBesideStalledReaders(b *testing.B) {
	without, with := newStalledWorld(b).stalledRuns()
	alone, beside := lowP99(without), lowP99(with)
	b.Logf("the readers' p99: %v without, %v beside stalled ones", alone, beside)
	rig.Judge(b, float64(beside)/float64(alone), 1.5)
}

func newStalledWorld(t testing.TB) *world {
	t.Helper()
	w := newWorld(t, setup{config: fmt.Sprintf("write_timeout: %v\nlimits: {id: 4KiB}", writeTimeout)})
	w.stalledRun(0) // caches, connections, the heap
	return w
}

// stalledRuns makes runs of both kinds. The same run without the stalled
// ones comes before each with them: the machine is not equally busy at all times.
func (w *world) stalledRuns() (without, with []stallRun) {
	w.t.Helper()
	for range runs {
		without = append(without, w.stalledRun(0))
		with = append(with, w.stalledRun(stalled))
	}
	return without, with
}

// A stallRun is what was measured in one run.
type stallRun struct {
	p99    []time.Duration // of each burst
	memory float64         // the most of the heap that was in use, in bytes
}

// lowP99 returns the first quartile of what the bursts had. All of this runs
// flat out on the same few cores, with whatever else they do, which only ever
// adds: readers that wait for stalled ones would wait in every burst.
func lowP99(runs []stallRun) time.Duration {
	var all []time.Duration
	for _, r := range runs {
		all = append(all, r.p99...)
	}
	slices.Sort(all)
	return all[len(all)/4]
}

// held returns the least that was held in a run: what a stalled stream takes is there in each.
func held(runs []stallRun) float64 {
	least := runs[0].memory
	for _, r := range runs {
		least = min(least, r.memory)
	}
	return least
}

// heap returns the bytes of the heap that are in use after a garbage collection.
func (w *world) heap() float64 {
	w.t.Helper()
	res, err := w.http.Get("http://" + w.admin + "/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	_, after, found := strings.Cut(string(text), "\n# HeapAlloc = ")
	line, _, _ := strings.Cut(after, "\n")
	n, perr := strconv.ParseFloat(line, 64)
	if err = errors.Join(err, perr); err != nil || !found {
		w.t.Fatalf("the heap's profile ends with %q: %v", text[max(0, len(text)-200):], err)
	}
	return n
}

// stalledRun opens five streams that are read and so many that are not, and
// measures under bursts.
func (w *world) stalledRun(stuck int) (r stallRun) {
	w.t.Helper()
	all := filter{Tools: true}
	for i := range 60 {
		all.URIs = append(all.URIs, item(i))
	}
	var reading []*stream
	for i := range readers {
		s := w.open(bulkyID(i), all)
		defer s.Close()
		w.wantAck(s)
		reading = append(reading, s)
	}
	for i := range stuck {
		w.stall(bulkyID(readers+i), all)
	}
	pairs := float64(len(all.Topics()))
	w.want(recovery, "all streams are there", map[string]float64{"mcpbridge_index_pairs": pairs * float64(readers+stuck)})

	begun := time.Now()
	for range bursts {
		touches := w.server.touch(burst/len(all.URIs)+1, all.URIs...)
		rig.Until(w.t, recovery, "the last update", func() string { return missing(reading, touches) })
		r.p99 = append(r.p99, percentile(latencies(reading, touches), 99).Round(10*time.Microsecond))
		r.memory = max(r.memory, w.heap())
	}
	if open := w.gauges()["mcpbridge_listen_streams"]; time.Since(begun) < writeTimeout && open != float64(readers+stuck) {
		w.t.Errorf("%v streams are open %v after the burst began, want all", open, time.Since(begun))
	}
	w.want(2*writeTimeout, "stalled streams are pruned", map[string]float64{
		"mcpbridge_listen_streams": readers, "mcpbridge_index_pairs": pairs * readers,
	})
	w.t.Logf("%d stalled: p99 %v, heap %.1f MiB, none left %v after the first burst began", stuck, r.p99,
		r.memory/(1<<20), time.Since(begun).Round(time.Millisecond))
	w.wantOpen(reading)
	return r
}

// stall opens a stream that is read up to its acknowledgment and not any
// further, nor closed.
func (w *world) stall(id string, want filter) {
	w.t.Helper()
	r := w.listening(id, want)
	r.Dialer.Control = smallWindow
	conn, err := listen.DialRaw(r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
	var got []byte
	buf := make([]byte, 1)
	for !strings.Contains(string(got), "acknowledged") {
		if _, err := conn.Read(buf); err != nil {
			w.t.Fatalf("reading the acknowledgment: %v", err)
		}
		got = append(got, buf[0])
	}
}

// missing says which stream was not told of a URI after its last touch.
func missing(streams []*stream, touches []entry) string {
	last := make(map[string]int64)
	for _, e := range touches {
		last[e.URI] = e.At
	}
	for _, s := range streams {
		for uri, at := range last {
			if end, problems := s.Status(); !s.Told(uri, at) {
				return fmt.Sprintf("stream %.10s (%s, %.200q) was not told of %s", s.ID, end, problems, uri)
			}
		}
	}
	return ""
}

// latencies returns for each update and stream how long it took until a
// notification of the URI came: one may stand for several.
func latencies(streams []*stream, touches []entry) (out []time.Duration) {
	byURI := make(map[string][]int64)
	for _, e := range touches {
		byURI[e.URI] = append(byURI[e.URI], e.At)
	}
	for _, s := range streams {
		due := make(map[string]int) // per URI, how many touches were told of
		for _, f := range s.Frames() {
			at := byURI[f.Topic]
			for due[f.Topic] < len(at) && at[due[f.Topic]] <= f.At {
				out = append(out, time.Duration(f.At-at[due[f.Topic]]))
				due[f.Topic]++
			}
		}
	}
	slices.Sort(out)
	return out
}

// percentile of what is sorted.
func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[(len(sorted)-1)*p/100]
}
