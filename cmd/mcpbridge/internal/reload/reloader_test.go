package reload

import (
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// There is one attempt at a time, each is counted and logged, and the last is kept.
func TestReloader(t *testing.T) {
	logs := &bridgetest.Log{}
	outcomes := []Outcome{{OK: true, Changed: []string{"a"}}, {Error: "config.yaml:3: no", File: "config.yaml", Line: 3}, {OK: true, NeedsRestart: []string{"listen"}}}
	n, inside, counted := 0, 0, []bool(nil)
	r := New(func() Outcome {
		inside++
		defer func() { inside-- }()
		if inside != 1 {
			t.Error("two attempts at a time")
		}
		n++
		return outcomes[n-1]
	}, slog.New(slog.NewTextHandler(logs, nil)), func(o Outcome) { counted = append(counted, o.OK) })
	if r.Last() != nil {
		t.Error("an outcome before the first attempt")
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { r.Now("SIGHUP") })
	}
	wg.Wait()
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest("POST", "/reload", nil))
	var got Outcome
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 || got.Why != "POST /reload" || got.Time.IsZero() || len(got.NeedsRestart) != 1 {
		t.Errorf("POST /reload = %d %s", w.Code, w.Body)
	}
	if len(counted) != 3 || !counted[0] || counted[1] || !counted[2] {
		t.Errorf("counted %v", counted)
	}
	for _, want := range []string{`msg="configuration was reloaded" reason=SIGHUP changed=[a]`, `reason=SIGHUP at=config.yaml:3 err="config.yaml:3: no"`, "keys=[listen]"} {
		if !strings.Contains(logs.String(), want) {
			t.Errorf("log = %s, want %s", logs, want)
		}
	}
	outcomes = append(outcomes, outcomes[1])
	w = httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest("POST", "/reload", nil))
	if w.Code != 422 || !strings.Contains(w.Body.String(), `"ok":false,"error":"config.yaml:3: no","file":"config.yaml","line":3`) {
		t.Errorf("POST /reload of a mistake = %d %s", w.Code, w.Body)
	}
	if last := r.Last(); last == nil || last.OK || last.Line != 3 {
		t.Errorf("Last() = %+v", last)
	}
	r.Close()
	if o := r.Now("SIGHUP"); o.OK || n != 4 {
		t.Errorf("after Close: %+v, %d attempts", o, n)
	}
}
