package main

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// A command that takes no notice of the end of its input does not hold up the verdict,
// and is ended all the same.
func TestU02ProbeEndsAfterTheVerdict(t *testing.T) {
	b := detector(t, config.Server{Command: os.Args[0], Args: []string{"odd", "answer " + saysModern + "\ndeaf"}}, 20*time.Second)
	b.config.Drain = time.Second
	f := b.probe(t.Context(), spec.Unknown)
	if f.Era != spec.Modern || f.Description == nil || string(f.Description.Capabilities) != `{"tools":{}}` {
		t.Errorf("probe = %+v, want a modern server and what it said of itself", f)
	}
	begun := time.Now()
	f.End()
	if took, grace := time.Since(begun), closeGrace(b.config.Drain); took < grace {
		t.Errorf("its end took %v, want the %v at least that it is given: the probe did not wait for it", took, grace)
	}
}

// A process of a server waits for the one that was probed, but not for long.
func TestU02NextProcessWaitsALittle(t *testing.T) {
	dialled := errors.New("dialled")
	dial := func(context.Context) (transport.Conn, error) { return nil, dialled }
	for _, tt := range []struct {
		name       string
		ends, want time.Duration
	}{
		{"one that ends soon is waited for", parting / 4, parting / 4},
		{"one that lingers is not", time.Hour, parting},
	} {
		synctest.Test(t, func(t *testing.T) {
			gone := make(chan struct{})
			time.AfterFunc(tt.ends, func() { close(gone) })
			begun := time.Now()
			_, err := after(gone, dial)(t.Context())
			if took := time.Since(begun); err != dialled || took != tt.want {
				t.Errorf("%s: dialled after %v, %v, want %v", tt.name, took, err, tt.want)
			}
			<-gone
		})
	}
	if after(nil, dial) == nil || after(make(chan struct{}), nil) != nil {
		t.Error("what has no probe before it, or is a URL, is not left as it is")
	}
}
