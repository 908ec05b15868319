package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// A stream is one events/stream request.
type stream struct {
	id   json.RawMessage
	send func(string) error
	n    int // events sent
}

// run sends what was asked for. An error says that nobody wants it any more.
func (st *stream) run(ctx context.Context, t ticks) error {
	if err := st.tell("active", `"cursor":"0","truncated":false`); err != nil {
		return err
	}
	for st.n < t.Count {
		if err := st.event(ctx, t); err != nil {
			return err
		}
	}
	if err := st.beat(ctx, t); err != nil || !t.Terminate {
		return err
	}
	return st.tell("terminated", `"error":{"code":-32024,"message":"access was revoked"}`)
}

func (st *stream) event(ctx context.Context, t ticks) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	err := st.tell("event", fmt.Sprintf(`"eventId":"%d","name":"ticks","timestamp":"2026-11-01T00:00:00Z","data":{"n":%[1]d,"big":9007199254740993},"cursor":"%d"`, st.n, st.n+1))
	st.n++
	if err == nil && st.n == t.Error {
		err = st.tell("error", `"error":{"code":-32603,"message":"a look upstream failed"}`)
	}
	return err
}

// beat sends heartbeats.
func (st *stream) beat(ctx context.Context, t ticks) error {
	tick := time.NewTicker(time.Duration(max(1, t.EveryMs)) * time.Millisecond)
	defer tick.Stop()
	for n := 0; n != t.Heartbeats; n++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if err := st.tell("heartbeat", fmt.Sprintf(`"cursor":"%d"`, st.n)); err != nil {
			return err
		}
	}
	return nil
}

func (st *stream) tell(what, params string) error {
	return st.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/events/%s","params":{%s,"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, what, params, st.id))
}

// ended is the result of a stream.
func ended(id json.RawMessage) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":%[1]s}}}`, id)
}

func answered(id json.RawMessage, result string, failed *failure) string {
	if failed != nil {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, id, failed.code, failed.text)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}
