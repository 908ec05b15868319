package matrix

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/interop/internal/record"
)

// How mcpbridge tells of a quirk that it met.
var (
	countedQuirk = regexp.MustCompile(`(?m)^mcpbridge_quirks_total\{quirk="([^"]+)",server="([^"]+)"\} (\S+)$`)
	loggedQuirk  = regexp.MustCompile(`"quirk":"([^"]+)"`)
)

// wrapLog is where mcpbridge wrap logs what comes of a spot.
func (w *world) wrapLog(at spot) string { return filepath.Join(w.folder(at), "wrap.log") }

// recordBack puts a Recorder before the server of a spot, and returns its URL.
func (w *world) recordBack(at spot, addr string) (url string, err error) {
	r, err := record.Start("http://" + addr)
	if err != nil {
		return "", err
	}
	w.backs[at] = r
	return r.URL, nil
}

// recordFronts puts a Recorder before mcpbridge for each spot.
func (w *world) recordFronts() error {
	for at := range w.spots {
		r, err := record.Start("http://" + w.listen)
		if err != nil {
			return err
		}
		w.fronts[at] = r
	}
	return nil
}

// forget has what is recorded on a cell's way begin here.
func (w *world) forget(c Cell) {
	at := spot{c.Server, c.Back}
	w.fronts[at].Forget()
	if back := w.backs[at]; back != nil {
		back.Forget()
	}
}

// shown returns the quirks that the bytes show on a cell's way, sorted: the client's over HTTP, and the
// server's over HTTP.
func (w *world) shown(c Cell) []string {
	at := spot{c.Server, c.Back}
	names := slices.Collect(maps.Keys(record.ByClients(w.fronts[at].Exchanges())))
	if back := w.backs[at]; back != nil {
		names = append(names, record.ByServers(back.Exchanges())...)
	}
	slices.Sort(names)
	return names
}

// quirks returns how often mcpbridge has met each quirk on a cell's way, so far.
func (w *world) quirks(c Cell) (map[string]string, error) {
	at, met := spot{c.Server, c.Back}, make(map[string]string)
	if c.Front == "stdio" {
		text, err := os.ReadFile(w.wrapLog(at))
		for _, m := range loggedQuirk.FindAllStringSubmatch(string(text), -1) {
			met[m[1]] += "+"
		}
		if os.IsNotExist(err) { // nothing was logged yet
			err = nil
		}
		return met, err
	}
	res, err := http.Get("http://" + w.admin + "/metrics")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	for _, m := range countedQuirk.FindAllStringSubmatch(string(text), -1) {
		if m[2] == at.String() {
			met[m[1]] = m[3]
		}
	}
	return met, err
}

// judgeQuirks holds that the quirks that were met in a cell are those of the table.
func (w *world) judgeQuirks(c Cell, before map[string]string) error {
	after, err := w.quirks(c)
	if err != nil {
		return err
	}
	if text, err := os.ReadFile(w.wrapLog(spot{c.Server, c.Back})); c.Front == "stdio" && !bytes.Contains(text, []byte(`"msg":"request"`)) {
		return fmt.Errorf("wrap logged no request, so nothing is known of quirks: %v", err)
	}
	maps.DeleteFunc(after, func(quirk, n string) bool { return before[quirk] == n })
	got, want := slices.Sorted(maps.Keys(after)), w.table.quirks(c)
	if !slices.Equal(got, want) {
		return fmt.Errorf("mcpbridge met the quirks [%s], want [%s]", strings.Join(got, " "), strings.Join(want, " "))
	}
	if shown := w.shown(c); !slices.Equal(shown, want) {
		return fmt.Errorf("the bytes show the quirks [%s], want [%s]", strings.Join(shown, " "), strings.Join(want, " "))
	}
	return nil
}
