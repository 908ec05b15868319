package group

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// everything is what a group has of which not all members are known.
const everything = `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"completions":{},"logging":{}}`

// declaring returns members that declare capabilities.
func declaring(capabilities ...string) (members []*fake) {
	for i, text := range capabilities {
		f := newFake(string(rune('a' + i)))
		f.capabilities = text
		members = append(members, f)
	}
	return members
}

// described returns the description of a group.
func describe(t *testing.T, r *rig) *mcp.Description {
	t.Helper()
	d, err := r.Describe(t.Context(), request(spec.MethodDiscover, ""))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A group has what one of its members has. All that changes is told, and an extension if all who
// have it agree.
func TestG10Capabilities(t *testing.T) {
	for _, tt := range []struct {
		name string
		of   []string
		want string
	}{
		{"tools", []string{`{"tools":{}}`, `{}`}, `{"tools":{"listChanged":true}}`},
		{"nothing", []string{`{}`, `{}`}, `{}`},
		{"union", []string{`{"tools":{"listChanged":false},"logging":{}}`, `{"prompts":null,"resources":{"subscribe":true},"completions":{"x":1}}`}, `{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{"x":1},"logging":{}}`},
		{"one that can", []string{`{"resources":{"subscribe":false,"x":1}}`, `{"resources":{"subscribe":true,"x":2}}`}, `{"resources":{"subscribe":true,"x":1,"listChanged":true}}`},
		{"extensions", []string{`{"extensions":{"a":{"x":1,"y":2},"b":{},"c":{}}}`, `{"extensions":{"a":{"y":2,"x":1},"b":{"z":1},"d":{}},"experimental":{"e":{}}}`}, `{"experimental":{"e":{}},"extensions":{"a":{"x":1,"y":2},"c":{},"d":{}}}`},
		{"disputed", []string{`{"extensions":{"a":{}},"future":{"a":1}}`, `{"extensions":{"a":{"x":1}},"future":{"a":1}}`, `{"extensions":{"a":{}},"other":1}`, `{"other":2}`}, `{"future":{"a":1}}`},
		{"tasks of sessions", []string{`{"tasks":{"list":{}}}`, `{}`}, `{}`},
	} {
		if got := string(describe(t, newRig(t, nil, declaring(tt.of...)...)).Capabilities); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// A group describes itself once all members have, or after a time. What one that is not known may
// have, it has.
func TestG10UnknownMembers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*fake)
		want   string
		takes  time.Duration
	}{
		{"known", func(*fake) {}, `{"tools":{"listChanged":true}}`, 0},
		{"slow", describes(time.Second, nil), `{"tools":{"listChanged":true}}`, time.Second},
		{"silent", describes(time.Hour, nil), everything, 2 * time.Second},
		{"down", func(f *fake) { f.err = errors.New("connection refused") }, everything, 0},
		{"not served", func(f *fake) { f.gone = true }, everything, 0},
		{"starts", func(f *fake) { f.startsAfter(1020 * time.Millisecond) }, `{"tools":{"listChanged":true}}`, 1050 * time.Millisecond},
		{"does not start", func(f *fake) { f.startsAfter(time.Hour) }, everything, 2 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				members := declaring(`{"tools":{}}`, `{}`)
				members[0].cache, members[1].cache = mcp.CacheHint{TTL: 500, Public: true}, mcp.CacheHint{TTL: 300, Public: true}
				tt.change(members[1])
				r, begin := newRig(t, nil, members...), time.Now()
				d := describe(t, r)
				if took := time.Since(begin); string(d.Capabilities) != tt.want || took != tt.takes {
					t.Errorf("%s after %v, want %s after %v", d.Capabilities, took, tt.want, tt.takes)
				}
				want := mcp.CacheHint{TTL: 300, Public: true}
				if tt.want == everything {
					want = mcp.CacheHint{}
				}
				if d.Cache != want {
					t.Errorf("it may be cached %+v, want %+v", d.Cache, want)
				}
			})
		})
	}
}

// Ten commands that start side by side are described a moment after the slowest of them, or after
// patience, and at once if they are remembered. One that takes longer is asked on, so that it is
// remembered the next time.
func TestG10TenCommands(t *testing.T) {
	const moment = 100 * time.Millisecond
	for _, tt := range []struct {
		name           string
		slowest        time.Duration
		takes, atMost  time.Duration
		described      int
		describedLater int // a minute later
	}{
		{"slowest within patience", 1490 * time.Millisecond, 1490 * time.Millisecond, 1490*time.Millisecond + moment, 10, 10},
		{"slowest beyond", 5 * time.Second, DefaultPatience, DefaultPatience, 9, 10},
		{"slowest never", time.Hour, DefaultPatience, DefaultPatience, 9, 9},
		{"remembered", 0, 0, 0, 10, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var members []*fake
				var described atomic.Int64
				for n := range 10 {
					f := newFake(fmt.Sprint("m", n))
					starts := time.Now().Add(tt.slowest * time.Duration(n+1) / 10)
					if n < 9 {
						starts = time.Now().Add(min(tt.slowest, time.Second) * time.Duration(n+1) / 10)
					}
					f.describe = func(context.Context, *mcp.Request) (*mcp.Description, error) {
						if time.Now().Before(starts) {
							return nil, mcp.ErrStarting
						}
						described.Add(1)
						return &mcp.Description{Capabilities: []byte(`{"tools":{}}`)}, nil
					}
					members = append(members, f)
				}
				r, begin := newRig(t, nil, members...), time.Now()
				describe(t, r)
				if took := time.Since(begin); took < tt.takes || took > tt.atMost || described.Load() != int64(tt.described) {
					t.Errorf("after %v, with %d described, want %v and %d", took, described.Load(), tt.takes, tt.described)
				}
				time.Sleep(time.Minute)
				if n := described.Load(); n != int64(tt.describedLater) {
					t.Errorf("%d are described in the end, want %d", n, tt.describedLater)
				}
			})
		})
	}
}

// describes has a member describe itself after a time, with an error if there is one.
func describes(d time.Duration, err error) func(*fake) {
	return func(f *fake) {
		f.describe = func(ctx context.Context, _ *mcp.Request) (*mcp.Description, error) {
			if _, ended := after(d)(ctx, nil, nil); ended != nil {
				return nil, ended
			}
			return &mcp.Description{Capabilities: []byte(f.capabilities), Cache: f.cache}, err
		}
	}
}

// startsAfter has a member start for a time.
func (f *fake) startsAfter(d time.Duration) {
	starts := time.Now().Add(d)
	f.describe = func(context.Context, *mcp.Request) (*mcp.Description, error) {
		if time.Now().Before(starts) {
			return nil, mcp.ErrStarting
		}
		return &mcp.Description{Capabilities: []byte(f.capabilities), Cache: f.cache}, nil
	}
}

// With no member that is known, or on its way, there is nothing to describe; nor where all are
// needed.
func TestG10NoMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("connection refused")
		members := declaring(`{"tools":{}}`, `{}`)
		describe := func(r *rig) string {
			d, err := r.Describe(t.Context(), request(spec.MethodInitialize, ""))
			if err != nil {
				return err.Error()
			}
			return string(d.Capabilities)
		}
		members[0].err, members[1].err = down, down
		r := newRig(t, nil, members...)
		if got := describe(r); !strings.Contains(got, `group "all" is not ready: server "a": connection refused; server "b": connection refused; try again later`) {
			t.Errorf("all are down: %s", got)
		}
		members[1].err = nil
		members[1].startsAfter(time.Hour)
		if got := describe(r); got != everything {
			t.Errorf("one is starting: %s", got)
		}
		time.Sleep(DefaultStartPatience) // in which it is asked for its description
		synctest.Wait()
		members[1].describe = nil
		if got := describe(newRig(t, func(o *Options) { o.Require = true }, members...)); !strings.Contains(got, `server "a": connection refused`) {
			t.Errorf("all are needed: %s", got)
		}
		if got := describe(newRig(t, nil, members[0])); got != down.Error() {
			t.Errorf("the only one is down: %s", got)
		}
	})
}

// Whoever asks when it is too late gets what is known, at once.
func TestG10WhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		members := declaring(`{"tools":{}}`, `{"prompts":{}}`)
		d, err := newRig(t, nil, members...).Describe(mcp.Known, request(spec.MethodDiscover, ""))
		if err != nil || string(d.Capabilities) != `{"tools":{"listChanged":true},"prompts":{"listChanged":true}}` || d.ServerInfo == nil {
			t.Errorf("%+v, %v", d, err)
		}
		describes(time.Hour, nil)(members[0])
		describes(time.Hour, nil)(members[1])
		if _, err := newRig(t, nil, members...).Describe(mcp.Known, request(spec.MethodDiscover, "")); !errors.Is(err, context.Canceled) {
			t.Errorf("nothing is known: %v", err)
		}
	})
}

// The instructions of a group are those of its configuration, or those of its members, each under
// its name, and bounded. serverInfo is the group's.
func TestG10Instructions(t *testing.T) {
	members := declaring(`{}`, `{}`, `{}`)
	members[0].instructions, members[2].instructions = "  Read \"this\".\n", strings.Repeat("é", maxInstructions)
	d := describe(t, newRig(t, nil, members...))
	text := wire.Unquote(d.Instructions)
	head, rest, _ := strings.Cut(text, "ééé")
	if want := "## a\n\nIts names begin with a__.\n\nRead \"this\".\n\n## c\n\nIts names begin with c__.\n\n"; head != want || len(rest) > maxInstructions || !strings.HasSuffix(rest, "é…") {
		t.Errorf("instructions are %q and %d bytes, want %q", head, len(rest), want)
	}
	if string(d.ServerInfo) != `{"name":"all","version":"1"}` {
		t.Errorf("serverInfo is %s", d.ServerInfo)
	}
	members[2].instructions = ""
	if got, want := string(describe(t, newRig(t, bare, members...)).Instructions), `"## a\n\nRead \"this\"."`; got != want {
		t.Errorf("without prefixes, instructions are %s, want %s", got, want)
	}
	own := func(o *Options) { o.Instructions = "Mine." }
	if got := string(describe(t, newRig(t, own, members...)).Instructions); got != `"Mine."` {
		t.Errorf("instructions of the configuration are %s", got)
	}
	members[0].instructions = ""
	if got := describe(t, newRig(t, nil, members...)).Instructions; got != nil {
		t.Errorf("without any, instructions are %s", got)
	}
}

// A group has the era of all its members, if they have one.
func TestG10Era(t *testing.T) {
	a, b := newFake("a"), newFake("b")
	r := newRig(t, nil, a, b)
	for _, tt := range []struct {
		a, b spec.Era
		gone bool
		want spec.Era
	}{
		{spec.Modern, spec.Modern, false, spec.Modern}, {spec.Legacy, spec.Legacy, false, spec.Legacy}, {spec.Modern, spec.Legacy, false, spec.Unknown},
		{spec.Modern, spec.Unknown, false, spec.Unknown}, {spec.Unknown, spec.Modern, false, spec.Unknown}, {spec.Modern, spec.Modern, true, spec.Unknown},
	} {
		if a.era, b.era, b.gone = tt.a, tt.b, tt.gone; r.roster.era() != tt.want {
			t.Errorf("the era of %v and %v is %v, want %v", tt.a, tt.b, r.roster.era(), tt.want)
		}
	}
}

// A group is there if one member is, or, where none may be left out, if all are.
func TestG18ReadyIfOneMemberIs(t *testing.T) {
	down := errors.New("connection refused")
	a, b := newFake("a"), newFake("b")
	for _, tt := range []struct {
		a, b      error
		one, each string // what the error says
	}{
		{nil, nil, "", ""}, {nil, down, "", `server "b": connection refused`}, {down, down, `server "a": connection refused; server "b": connection refused`, `server "a"`},
		{nil, mcp.ErrStarting, "", "starting: b"}, {down, mcp.ErrStarting, "starting: b", "starting: b"},
	} {
		a.err, b.err = tt.a, tt.b
		for require, want := range map[bool]string{false: tt.one, true: tt.each} {
			err := newRig(t, func(o *Options) { o.Require = require }, a, b).roster.err(require)
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%v and %v, all needed %v: %v, want %s", tt.a, tt.b, require, err, want)
			}
			if errors.Is(err, mcp.ErrStarting) != strings.HasPrefix(want, "starting") {
				t.Errorf("%v is starting: %v", err, errors.Is(err, mcp.ErrStarting))
			}
		}
	}
}
