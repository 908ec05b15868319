package tasks

import (
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// What a task of 2025 is in 2026: integers, the gateway's id and life, and nothing of the wrong name.
func TestT10Fields(t *testing.T) {
	f := form{id: "ours", made: "2026-01-01T00:00:00.000Z", ttl: 60000, message: "a third"}
	for _, tt := range []struct{ name, in, want string }{
		{"all", `{"taskId":"t1","status":"working","createdAt":"a","lastUpdatedAt":"b","statusMessage":"m","ttl":1e6,"pollInterval":1500}`,
			`{"taskId":"ours","status":"working","createdAt":"a","lastUpdatedAt":"b","statusMessage":"m","ttlMs":60000,"pollIntervalMs":1500}`},
		{"little", `{"taskId":"t1","status":"submitted","ttl":null}`,
			`{"taskId":"ours","status":"working","createdAt":"2026-01-01T00:00:00.000Z","lastUpdatedAt":"2026-01-01T00:00:00.000Z","statusMessage":"a third","ttlMs":60000}`},
		{"fractions and nulls", `{"statusMessage":null,"createdAt":null,"lastUpdatedAt":"b","pollInterval":0.5}`,
			`{"taskId":"ours","status":"working","lastUpdatedAt":"b","createdAt":"2026-01-01T00:00:00.000Z","statusMessage":"a third","ttlMs":60000,"pollIntervalMs":1}`},
		{"unknown members", `{"createdAt":"a","lastUpdatedAt":"b","statusMessage":"m","com.example/x":{"y":1.0},"resultType":"odd","ttlMs":1,"result":1,"inputRequests":{},"_meta":{"k":1,"io.modelcontextprotocol/related-task":{"taskId":"t1"}}}`,
			`{"taskId":"ours","status":"working","createdAt":"a","lastUpdatedAt":"b","statusMessage":"m","com.example/x":{"y":1.0},"_meta":{"k":1},"ttlMs":60000}`},
	} {
		if got := string(f.append(nil, []byte(tt.in), upstream.TaskWorking, nil)); got != tt.want {
			t.Errorf("%s: %s\nbecame %s\nwant   %s", tt.name, tt.in, got, tt.want)
		}
	}
}

func TestT10Life(t *testing.T) {
	for in, want := range map[string]time.Duration{
		`{}`: time.Hour, `{"ttl":null}`: time.Hour, `{"ttl":60000}`: time.Minute, `{"ttl":59999.5}`: time.Minute,
		`{"ttl":7200000}`: time.Hour, `{"ttl":0}`: time.Hour, `{"ttl":-1}`: time.Hour, `{"ttl":"x"}`: time.Hour, `{"ttl":1e300}`: time.Hour,
	} {
		if got := LifeOf([]byte(in), time.Hour); got != want {
			t.Errorf("LifeOf(%s) = %v, want %v", in, got, want)
		}
	}
}

func TestT10Body(t *testing.T) {
	text := []byte(`{"taskId":"x"}`)
	for _, tt := range []struct {
		state upstream.TaskState
		kind  string
		want  string
	}{
		{upstream.TaskState{Text: text}, "task", `{"resultType":"task","taskId":"x"}`},
		{upstream.TaskState{Text: text, Result: []byte(`{"a":1}`)}, "complete", `{"resultType":"complete","taskId":"x","result":{"a":1}}`},
		{upstream.TaskState{Text: text, Err: &wire.Error{Code: -1, Message: "m", Data: []byte(`[1]`)}}, "", `{"taskId":"x","error":{"code":-1,"message":"m","data":[1]}}`},
	} {
		if got := string(Body(&tt.state, tt.kind)); got != tt.want {
			t.Errorf("Body = %s, want %s", got, tt.want)
		}
	}
}
