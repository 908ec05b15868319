package router

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// Who is no replica can't plant a session: neither at the endpoint of clients, nor at the peer
// listener, which wants an envelope.
func TestAttackPlantedSession(t *testing.T) {
	t.Parallel()
	d := newDeployment(t, 2, nil)
	r := d.all[0]
	id := "1" + d.all[1].peers.Self().Instance + "-PLANTED"
	parcel := `{"sessions":[{"id":"` + id + `","name":"x","principal":"alice","revision":"2025-11-25","capabilities":{},"offered":{}}]}`
	for name, at := range map[string]struct {
		url  string
		want int
	}{"clients": {r.URL, http.StatusNotFound}, "peers": {r.listener.URL, http.StatusUnauthorized}} {
		resp, err := http.Post(at.url+"/peer/session/peer", "application/json", strings.NewReader(parcel))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != at.want || r.sessions() != 0 {
			t.Errorf("%s: %d %s, and %d sessions; want %d and none", name, resp.StatusCode, text, r.sessions(), at.want)
		}
	}
	if a := r.send(t, http.MethodPost, listToolsBody, sessionHeaders(id)); a.status != http.StatusNotFound {
		t.Errorf("the planted session = %+v", a)
	}
}
