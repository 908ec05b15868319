package router

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/detect"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// An upgradable is a legacy server whose program can be replaced by a modern one.
type upgradable struct {
	d        *detect.Detector
	replaced atomic.Bool
}

// open returns the Detector of the server that a legacy back is connected to.
func (u *upgradable) open(back mcp.Back, err error) (mcp.Back, error) {
	if err != nil {
		return nil, err
	}
	u.d, err = detect.New(detect.Options{
		Name: "peer",
		Probe: func(context.Context) detect.Finding {
			if u.replaced.Load() {
				return detect.Finding{Era: spec.Modern, Why: "it was upgraded"}
			}
			return detect.Finding{Era: spec.Legacy, Why: "it said so"}
		},
		Open: func(f detect.Finding) (mcp.Back, error) {
			if f.Era == spec.Modern {
				return modernStub{}, nil
			}
			return &outdated{back.(*legacyback.Back), u}, nil
		},
	})
	return u.d, err
}

// upgrade replaces the program, and has the Detector notice.
func (u *upgradable) upgrade(t *testing.T) {
	t.Helper()
	u.replaced.Store(true)
	req := &mcp.Request{Method: spec.MethodToolsList, Profile: mcp.Profile{Scope: "peer/upgrade"}}
	if _, err := u.d.Serve(t.Context(), req, nil); err != nil || u.d.Era() != spec.Modern {
		t.Fatalf("after the upgrade: era %v, err %v", u.d.Era(), err)
	}
}

// An outdated is the back of a program that may have been replaced.
type outdated struct {
	*legacyback.Back
	u *upgradable
}

func (b *outdated) Serve(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
	if b.u.replaced.Load() {
		return nil, mcp.ErrOtherEra
	}
	return b.Back.Serve(ctx, req, c)
}

// A modernStub is the back of a modern server that has nothing.
type modernStub struct{}

func (modernStub) Serve(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) {
	return mcp.NewResult([]byte(`{}`), nil), nil
}

func (modernStub) Describe(context.Context, *mcp.Request) (*mcp.Description, error) {
	return &mcp.Description{Capabilities: []byte(`{}`)}, nil
}

func (modernStub) Watch(context.Context, mcp.Profile, []fanout.Topic) ([]fanout.Topic, func(), error) {
	return nil, func() {}, nil
}

func (modernStub) Start()                      {}
func (modernStub) Era() spec.Era               { return spec.Modern }
func (modernStub) Err() error                  { return nil }
func (modernStub) Close(context.Context) error { return nil }
