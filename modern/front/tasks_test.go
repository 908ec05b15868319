package front

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/moderntest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// What the extension has not does not exist, whatever the server's era; and what it has only where
// clients may hold tasks.
func TestT01OtherMethodsDoNotExist(t *testing.T) {
	for _, era := range []spec.Era{spec.Modern, spec.Legacy, spec.Unknown} {
		for _, mode := range []settings.TaskMode{settings.TasksAuto, settings.TasksRun, settings.TasksOff} {
			s, asked := modernScript(`{"resultType":"complete"}`)
			f := frontOf(t, s, func(o *Options) { behind(era)(o); o.Settings.Tasks.Mode = mode })
			held := mode == settings.TasksAuto
			for method, passes := range map[string]bool{
				"tasks/result": false, "tasks/list": false, "tasks/x": false,
				"tasks/get": held, "tasks/update": held, "tasks/cancel": held,
			} {
				w := moderntest.OverHTTP(t, f, moderntest.Request("1", method, moderntest.DeclaresTasks, `,"taskId":"1"`), nil)
				missing := w.Code == 404 && strings.Contains(w.Body.String(), `"code":-32601`)
				if missing == passes || (len(asked) == 1) != passes {
					t.Errorf("%s before a server of era %v with tasks %s = %d %s, passed %d times", method, era, mode, w.Code, w.Body, len(asked))
				}
				for len(asked) > 0 {
					<-asked
				}
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

// Who made a result hears that its client does not get it: it left, or can't be written to.
func TestT15ResultsThatNobodyGets(t *testing.T) {
	for name, capabilities := range map[string]string{"parkable": canBeAsked, "plain": `{}`} {
		t.Run("T-15 "+name, func(t *testing.T) {
			lost := make(chan struct{}, 1)
			s := moderntest.NewScript()
			running := make(chan struct{})
			s.OnServe = func(ctx context.Context, _ *mcp.Request, _ mcp.Caller) (*mcp.Result, error) {
				close(running)
				if name == "parkable" {
					<-ctx.Done() // and is done all the same
				}
				res := mcp.NewResult([]byte(`{"content":[]}`), nil)
				res.OnLost(func() { lost <- struct{}{} })
				return res, nil
			}
			f := frontOf(t, s, behind(spec.Legacy))
			if name == "plain" {
				w := &brokenWriter{httptest.NewRecorder()}
				moderntest.OverHTTPTo(t, f, w, moderntest.Request("1", "tools/call", capabilities, `,"name":"x"`))
			} else {
				l := lineOf(t, f)
				l.Send(moderntest.Request("1", "tools/call", capabilities, `,"name":"x"`))
				<-running
				l.Cancel("1")
			}
			<-lost
		})
	}
}

// A brokenWriter is a response to a client that is gone.
type brokenWriter struct{ *httptest.ResponseRecorder }

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }
