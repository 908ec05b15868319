package back

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A doubter does not answer: its questions end when they are withdrawn.
type doubter struct {
	backtest.Caller
	withdrawn atomic.Int32
}

func newDoubter() *doubter {
	d := &doubter{}
	d.Ask = func(ctx context.Context, _ []mcp.InputRequest) ([]mcp.InputResponse, error) {
		<-ctx.Done()
		d.withdrawn.Add(1)
		return nil, context.Cause(ctx)
	}
	return d
}

// A question that the server takes back is withdrawn, and is not answered.
func TestT25WithdrawnQuestions(t *testing.T) {
	for name, waits := range map[string]bool{"tasks/result": true, "beside": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &taskServer{looks: sequence(asks(questionA), asks(questionA), stillWorking, done)}
				b, end := s.back(t, holding())
				defer end()
				id, d := holdOne(t, b), newDoubter()
				if waits {
					if body, err := upBody(b.Serve(t.Context(), heldRequest(spec.MethodTaskResult, id), d)); err != nil || !strings.Contains(body, `"text":"done"`) {
						t.Errorf("tasks/result = %s, %v, want the result", body, err)
					}
				}
				for n := range 4 {
					req := heldRequest(spec.MethodTaskGet, id)
					req.Aside = d
					if _, err := upBody(b.Serve(t.Context(), req, &backtest.Caller{})); err != nil {
						t.Error(err)
					}
					synctest.Wait()
					if want := min(n/2, 1); !waits && int(d.withdrawn.Load()) != want {
						t.Errorf("after look %d %d questions were withdrawn, want %d", n, d.withdrawn.Load(), want)
					}
				}
				if len(d.Asked()) != 1 || d.withdrawn.Load() != 1 || len(s.updates) != 0 {
					t.Errorf("%d questions, %d withdrawn, and the answers %q, want one, one and none", len(d.Asked()), d.withdrawn.Load(), s.updates)
				}
			})
		})
	}
}

// Open questions are withdrawn with their task: cancelled, or over its time.
func TestT25QuestionsEndWithTheTask(t *testing.T) {
	for name, over := range map[string]func(t *testing.T, b *Back, id string){
		"cancelled": func(t *testing.T, b *Back, id string) {
			if _, err := of(t, b, spec.MethodTaskCancel, id); err != nil {
				t.Error(err)
			}
		},
		"its time is up": func(*testing.T, *Back, string) { time.Sleep(time.Minute) },
	} {
		for where, waits := range map[string]bool{"tasks/result": true, "beside": false} {
			t.Run(name+", "+where, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &taskServer{looks: sequence(asks(questionA)), ttl: "60000"}
					b, end := s.back(t, holding())
					defer end()
					id, d := holdOne(t, b), newDoubter()
					req := heldRequest(spec.MethodTaskGet, id)
					if req.Aside = d; waits {
						req.Method, req.Aside = spec.MethodTaskResult, nil
					}
					got := upServe(t.Context(), b, req, d)
					synctest.Wait()
					if d.withdrawn.Load() != 0 || len(d.Asked()) != 1 {
						t.Errorf("%d questions, %d withdrawn, want one that is open", len(d.Asked()), d.withdrawn.Load())
					}
					over(t, b, id)
					if got := <-got; waits && got.err == nil {
						t.Errorf("who waited got %s, want an error", got.body)
					}
					synctest.Wait()
					if d.withdrawn.Load() != 1 || len(s.updates) != 0 {
						t.Errorf("%d questions were withdrawn, and the answers are %q, want one and none", d.withdrawn.Load(), s.updates)
					}
				})
			})
		}
	}
}

// An answer that comes in the moment in which who waits leaves is passed, and nobody is asked again.
func TestT25AnswersOfWhoLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &taskServer{}
		s.looks = func(int) string { return []string{asks(questionA), done}[len(s.updates)] }
		b, end := s.back(t, holding())
		defer end()
		id := holdOne(t, b)
		ctx, leave := context.WithCancel(t.Context())
		x := &backtest.Caller{Ask: func(ctx context.Context, qs []mcp.InputRequest) ([]mcp.InputResponse, error) {
			leave()
			<-ctx.Done()
			return answers(willing)(ctx, qs)
		}}
		if got := <-upServe(ctx, b, heldRequest(spec.MethodTaskResult, id), x); got.err == nil {
			t.Errorf("who left got %s", got.body)
		}
		next := &backtest.Caller{Ask: answers(willing)}
		if body, err := upBody(b.Serve(t.Context(), heldRequest(spec.MethodTaskResult, id), next)); err != nil || !strings.Contains(body, `"text":"done"`) {
			t.Errorf("the next one got %s, %v, want the result", body, err)
		}
		if len(s.updates) != 1 || len(next.Asked()) != 0 {
			t.Errorf("the server got the answers %q, and the next one was asked %d times, want one and none", s.updates, len(next.Asked()))
		}
	})
}

// What a client answers is passed as it is; an elicitation that failed is a cancelled one.
func TestT25DeclinedQuestions(t *testing.T) {
	for name, c := range map[string]struct {
		answer mcp.InputResponse
		want   string
	}{
		"declined": {mcp.InputResponse{Result: json.RawMessage(`{"action":"decline"}`)}, `{"action":"decline"}`},
		"failed":   {mcp.InputResponse{Err: wire.Errorf(-1, "no window")}, `{"action":"cancel"}`},
		"invalid":  {mcp.InputResponse{Result: json.RawMessage(`{"action":"perhaps"}`)}, `{"action":"cancel"}`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &taskServer{}
				s.looks = func(int) string { return []string{asks(questionA), done}[len(s.updates)] }
				b, end := s.back(t, holding())
				defer end()
				x := &backtest.Caller{Ask: func(context.Context, []mcp.InputRequest) ([]mcp.InputResponse, error) {
					return []mcp.InputResponse{c.answer}, nil
				}}
				if body, err := upBody(b.Serve(t.Context(), heldRequest(spec.MethodTaskResult, holdOne(t, b)), x)); err != nil || !strings.Contains(body, `"text":"done"`) {
					t.Errorf("tasks/result = %s, %v, want the result", body, err)
				}
				if len(s.updates) != 1 || s.updates[0] != `{"\u0061":`+c.want+`}` {
					t.Errorf("the server got %q, want %s", s.updates, c.want)
				}
			})
		})
	}
}

// A question that the client did not declare, or has no usable answer to, fails the task, which is
// cancelled at the server.
func TestT25QuestionsThatFailTheTask(t *testing.T) {
	for name, c := range map[string]struct {
		question, capabilities string
		answer                 mcp.InputResponse
		code                   int64
		text                   string
		asked                  int
	}{
		"undeclared": {questionA, `{"roots":{}}`, mcp.InputResponse{}, spec.CodeMissingCapability, "elicitation", 0},
		"unknown":    {`"k":{"method":"client/dance","params":{}}`, canAnswer, mcp.InputResponse{}, spec.CodeInternal, "client/dance", 0},
		"failed":     {questionB, canAnswer, mcp.InputResponse{Err: wire.Errorf(-1, "no folder")}, spec.CodeInternal, "no folder", 1},
		"invalid":    {questionB, canAnswer, mcp.InputResponse{Result: json.RawMessage(`{"roots":5}`)}, spec.CodeInternal, "invalid", 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &taskServer{looks: sequence(asks(c.question))}
				b, end := s.back(t, holding())
				defer end()
				x := &backtest.Caller{Ask: func(context.Context, []mcp.InputRequest) ([]mcp.InputResponse, error) {
					return []mcp.InputResponse{c.answer}, nil
				}}
				id := holdOne(t, b)
				req := heldRequest(spec.MethodTaskResult, id)
				req.Capabilities = json.RawMessage(c.capabilities)
				body, err := upBody(b.Serve(t.Context(), req, x))
				if e := wireErr(t, err); e.Code != c.code || !strings.Contains(e.Message, c.text) {
					t.Errorf("tasks/result = %s, %v, want %d %s", body, err, c.code, c.text)
				}
				if len(x.Asked()) != c.asked || len(s.updates) != 0 || s.canceled != 1 {
					t.Errorf("%d questions, the answers %q and %d cancellations, want %d, none and one", len(x.Asked()), s.updates, s.canceled, c.asked)
				}
				if body, err := of(t, b, spec.MethodTaskGet, id); err != nil || !strings.Contains(body, `"status":"failed"`) || !strings.Contains(body, c.text) {
					t.Errorf("tasks/get = %s, %v, want it failed, and why", body, err)
				}
			})
		})
	}
}

// What who waits has declared counts, not what another session has that looks meanwhile.
func TestT25WhoWaitsIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &taskServer{}
		s.looks = func(n int) string {
			if n == 1 {
				return stillWorking
			}
			return []string{asks(questionA), done}[len(s.updates)]
		}
		b, end := s.back(t, holding())
		defer end()
		id, x := holdOne(t, b), &backtest.Caller{Ask: answers(willing)}
		got := upServe(t.Context(), b, heldRequest(spec.MethodTaskResult, id), x)
		synctest.Wait()
		other := heldRequest(spec.MethodTaskGet, id)
		other.Capabilities = json.RawMessage(`{}`)
		if body, err := upBody(b.Serve(t.Context(), other, &backtest.Caller{})); err != nil || !strings.Contains(body, `"status":"input_required"`) {
			t.Errorf("tasks/get = %s, %v, want that it asks", body, err)
		}
		if got := <-got; got.err != nil || !strings.Contains(got.body, `"text":"done"`) || len(x.Asked()) != 1 {
			t.Errorf("tasks/result = %s, %v after %d questions, want the result after one", got.body, got.err, len(x.Asked()))
		}
	})
}

// A server that asks without end fails its task, which is cancelled.
func TestT25QuestionsWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &taskServer{looks: func(n int) string {
			var all []string
			for i := range 300 * n {
				all = append(all, strings.Replace(questionB, "b", fmt.Sprint(i), 1))
			}
			return asks(all...)
		}}
		opts, log, limits := holding(), new(bridgetest.Log), new(limitCounts)
		opts.Logger, opts.Metrics = log.Logger(), limits
		b, end := s.back(t, opts)
		defer end()
		x := &backtest.Caller{Ask: answers(willing)}
		body, err := upBody(b.Serve(t.Context(), heldRequest(spec.MethodTaskResult, holdOne(t, b)), x))
		if e := wireErr(t, err); e.Code != spec.CodeInternal || !strings.Contains(e.Message, `server "scripted" requested input`) || !strings.Contains(e.Message, "limit") {
			t.Errorf("tasks/result = %s, %v, want an error that names the server and the limit", body, err)
		}
		if n := len(x.Asked()); n != maxTaskQuestions || s.canceled != 1 {
			t.Errorf("%d questions were asked, and the task was cancelled %d times, want %d and once", n, s.canceled, maxTaskQuestions)
		}
		if limits.Count("task_questions") != 1 || strings.Count(log.String(), "asks too often") != 1 {
			t.Errorf("the limit was counted %d times, the log is %s", limits.Count("task_questions"), log)
		}
	})
}

// limitCounts counts the limits that were reached.
type limitCounts struct {
	mcp.NoMetrics
	bridgetest.Counts
}

// Limit implements [mcp.Metrics].
func (l *limitCounts) Limit(_, key string) { l.Add(key) }

// While nobody can be asked, a later look asks: who waits before anybody else, and the session that
// asked last.
func TestT25NobodyToAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &taskServer{}
		s.looks = func(int) string { return []string{asks(questionA), done}[len(s.updates)] }
		b, end := s.back(t, holding())
		defer end()
		id, deaf := holdOne(t, b), &backtest.Caller{} // which can't be asked
		look := func(aside mcp.Caller) {
			t.Helper()
			req := heldRequest(spec.MethodTaskGet, id)
			req.Aside = aside
			if body, err := upBody(b.Serve(t.Context(), req, &backtest.Caller{})); err != nil || !strings.Contains(body, `"status":"input_required"`) {
				t.Errorf("tasks/get = %s, %v, want that it asks", body, err)
			}
			synctest.Wait()
		}
		look(nil)
		look(deaf)
		look(deaf)
		if len(deaf.Asked()) != 2 || len(s.updates) != 0 {
			t.Errorf("who can't be asked was asked %d times, want with each of 2 looks", len(deaf.Asked()))
		}
		x := &backtest.Caller{Ask: answers(willing)}
		req := heldRequest(spec.MethodTaskResult, id)
		req.Aside = deaf
		if body, err := upBody(b.Serve(t.Context(), req, x)); err != nil || !strings.Contains(body, `"text":"done"`) || len(x.Asked()) != 1 || len(deaf.Asked()) != 2 {
			t.Errorf("tasks/result = %s, %v, asked %d times, want the result after one question", body, err, len(x.Asked()))
		}
	})
}

// An answer that does not reach the server is passed again by later looks; nobody is asked twice.
func TestT25AnswersArePassedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, lost := &taskServer{}, 0
		s.looks = func(int) string { return []string{asks(questionA), done}[len(s.updates)] }
		b, end := bubbleBack(t, holding(), func(w http.ResponseWriter, r *http.Request, m wire.Message) {
			if m.Method == spec.MethodTaskUpdate && lost < 5 {
				lost++
				panic(http.ErrAbortHandler)
			}
			s.serve(w, r, m)
		})
		defer end()
		x := &backtest.Caller{Ask: answers(willing)}
		if body, err := upBody(b.Serve(t.Context(), heldRequest(spec.MethodTaskResult, holdOne(t, b)), x)); err != nil || !strings.Contains(body, `"text":"done"`) {
			t.Errorf("tasks/result = %s, %v, want the result", body, err)
		}
		if lost != 5 || len(s.updates) != 1 || len(x.Asked()) != 1 {
			t.Errorf("%d answers were lost, %d arrived, of %d questions, want 5, one and one", lost, len(s.updates), len(x.Asked()))
		}
	})
}

// An answer that the server refuses is passed again if that can help, for as long as a server may be
// away. One that it never takes fails the call, and the task is cancelled. Nobody is asked twice.
func TestT25RefusedAnswers(t *testing.T) {
	type refusal struct {
		status int
		code   int64
	}
	for name, c := range map[string]struct {
		refusals []refusal
		sent     int // answers; zero for several
		text     string
	}{
		"internal":    {[]refusal{{200, spec.CodeInternal}}, 2, ""},
		"busy":        {[]refusal{{429, -32000}, {503, -32000}}, 3, ""},
		"for good":    {[]refusal{{200, spec.CodeInvalidParams}}, 1, "no -32602"},
		"after all":   {[]refusal{{200, spec.CodeInternal}, {200, spec.CodeInvalidParams}}, 2, "no -32602"},
		"without end": {slices.Repeat([]refusal{{200, spec.CodeInternal}}, 1000), 0, "no -32603"},
	} {
		for where, held := range map[string]bool{"tasks/result": true, "tools/call": false} {
			t.Run("T-25 "+name+", "+where, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, sent, begun := &taskServer{}, 0, time.Now()
					s.looks = func(int) string { return []string{asks(questionA), done}[len(s.updates)] }
					b, end := bubbleBack(t, holding(), func(w http.ResponseWriter, r *http.Request, m wire.Message) {
						if m.Method == spec.MethodTaskUpdate {
							if sent++; sent <= len(c.refusals) {
								upFail(w, c.refusals[sent-1].status, m.ID, c.refusals[sent-1].code, "")
								return
							}
						}
						s.serve(w, r, m)
					})
					defer end()
					x, req := &backtest.Caller{Ask: answers(willing)}, askedCall(`{"name":"x"}`)
					if held {
						req = heldRequest(spec.MethodTaskResult, holdOne(t, b))
					}
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
					defer cancel()
					body, err := upBody(b.Serve(ctx, req, x))
					switch {
					case c.text == "" && (err != nil || !strings.Contains(body, `"text":"done"`)):
						t.Errorf("the call = %s, %v, want the result", body, err)
					case c.text != "":
						if e := wireErr(t, err); e.Code != spec.CodeInternal || !strings.Contains(e.Message, c.text) || s.canceled != 1 {
							t.Errorf("the call = %v after %d cancellations, want the server's error after one", err, s.canceled)
						}
					}
					if len(x.Asked()) != 1 || c.sent > 0 && sent != c.sent || sent > 200 || time.Since(begun) > 2*settings.ListTimeout {
						t.Errorf("after %v %d answers were sent, of %d questions, want %d, of one", time.Since(begun), sent, len(x.Asked()), c.sent)
					}
				})
			})
		}
	}
}

// A client that takes a question as a task alone fails the call, or the task, with its words.
func TestT28ClientsThatInsistOnTasks(t *testing.T) {
	insists := &backtest.Caller{Ask: func(context.Context, []mcp.InputRequest) ([]mcp.InputResponse, error) {
		return []mcp.InputResponse{{Err: wire.Errorf(spec.CodeInvalidRequest, "as a task alone")}}, nil
	}}
	p := newUpPeer(t)
	p.says("tools/call", `{"resultType":"input_required","inputRequests":{`+questionA+`},"requestState":"s"}`)
	_, err := p.back(Options{}).Serve(t.Context(), askedCall(`{"name":"x"}`), insists)
	if e := wireErr(t, err); e.Code != spec.CodeInternal || !strings.Contains(e.Message, "as a task alone") {
		t.Errorf("the call = %v, want an error with the client's words", err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := &taskServer{looks: sequence(asks(questionA))}
		b, end := s.back(t, holding())
		defer end()
		id := holdOne(t, b)
		body, err := upBody(b.Serve(t.Context(), heldRequest(spec.MethodTaskResult, id), insists))
		if e := wireErr(t, err); e.Code != spec.CodeInternal || !strings.Contains(e.Message, "as a task alone") || s.canceled != 1 {
			t.Errorf("tasks/result = %s, %v after %d cancellations, want an error with the client's words, and one", body, err, s.canceled)
		}
	})
}
