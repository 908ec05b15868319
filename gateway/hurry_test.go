package gateway

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/cmdhook"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// The only client's command is told to hurry from CloseGrace after the end of the input on,
// and from the end of ctx on.
func TestU04CommandsHurryWhenTheOnlyClientLeaves(t *testing.T) {
	for _, tt := range []struct {
		name  string
		grace time.Duration
		leave func(in *os.File, cancel func())
	}{
		{"end of input", 50 * time.Millisecond, func(in *os.File, _ func()) { _ = in.Close() }},
		{"end of ctx", time.Hour, func(_ *os.File, cancel func()) { cancel() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			started := make(chan (<-chan struct{}), 1)
			near, far := transport.NewPipe()
			defer func() { _ = far.Close() }()
			o := Options{OneClient: true, CloseGrace: tt.grace, Servers: []ServerOptions{{Name: "s", Command: []string{"s"}}}}
			o.hooks = cmdhook.Hooks{Start: func(o transport.CommandOptions) (transport.Conn, error) {
				started <- o.Hurry
				return near, nil
			}}
			g, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			inR, inW, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = inW.Close() }()
			outR, outW, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = outR.Close() }()
			served := make(chan error, 1)
			go func() { served <- g.ServeStdio(ctx, inR, outW, "") }() // ends with the input or ctx
			g.Start()
			hurry := <-started
			select {
			case <-hurry:
				t.Error("the command hurries while its client is there")
			default:
			}
			tt.leave(inW, cancel)
			if err := <-served; err != nil {
				t.Errorf("ServeStdio = %v, want nil", err)
			}
			<-hurry
			if err := g.Shutdown(t.Context()); err != nil {
				t.Errorf("Shutdown = %v, want nil", err)
			}
		})
	}
}
