package front

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/moderntest"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// What the extension has not does not exist, whatever the server's era; and what it has
// only where the server may be modern.
func TestT01OtherMethodsDoNotExist(t *testing.T) {
	for _, era := range []spec.Era{spec.Modern, spec.Legacy, spec.Unknown} {
		s, asked := modernScript(`{"resultType":"complete"}`)
		f := frontOf(t, s, behind(era))
		for method, passes := range map[string]bool{
			"tasks/result": false, "tasks/list": false, "tasks/x": false,
			"tasks/get": era != spec.Legacy, "tasks/update": era != spec.Legacy, "tasks/cancel": era != spec.Legacy,
		} {
			w := moderntest.OverHTTP(t, f, moderntest.Request("1", method, moderntest.DeclaresTasks, `,"taskId":"1"`), nil)
			missing := w.Code == 404 && strings.Contains(w.Body.String(), `"code":-32601`)
			if missing == passes || (len(asked) == 1) != passes {
				t.Errorf("%s before a server of era %v = %d %s, passed %d times", method, era, w.Code, w.Body, len(asked))
			}
			for len(asked) > 0 {
				<-asked
			}
		}
	}
}

// Without headers there is nothing to compare, and the id is demanded all the same.
func TestT02NamesOfTasksOnConnections(t *testing.T) {
	s, asked := modernScript(`{"resultType":"complete"}`)
	l := lineOf(t, frontOf(t, s, behind(spec.Modern)))
	l.Send(moderntest.Request("1", "tasks/get", moderntest.DeclaresTasks, `,"taskId":"t-1"`))
	l.Want(`"id":1,"result"`)
	<-asked
	l.Send(moderntest.Request("2", "tasks/get", moderntest.DeclaresTasks, `,"taskId":[]`))
	l.Want(`"id":2,"error"`, "-32602")
	if len(asked) != 0 {
		t.Error("a request without an id got to the server")
	}
}

// A request about a task may come without Mcp-Name, which is counted.
func TestT02MissingNamesAreCounted(t *testing.T) {
	for _, named := range []bool{false, true} {
		s, asked := modernScript(`{"resultType":"complete"}`)
		met := quirks.New(quirks.Options{})
		f := frontOf(t, s, func(o *Options) { behind(spec.Modern)(o); o.Quirks = met })
		w := moderntest.OverHTTPWith(t, f, moderntest.Request("1", "tasks/get", moderntest.DeclaresTasks, `,"taskId":"t-1"`), func(h http.Header) {
			if !named {
				h.Del(spec.HeaderName)
			}
		})
		if w.Code != 200 || len(asked) != 1 {
			t.Errorf("named %v = %d %s, want it passed on", named, w.Code, w.Body)
		}
		if got := met.Meetings(); len(got) == 1 == named || !named && got[0].Quirk != quirks.TaskName {
			t.Errorf("named %v: met %v", named, got)
		}
	}
}
