package detect

import (
	"errors"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/status"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// A verdict says why a server is taken for one of its era, and since when. failed is when
// the last probe failed of a server without a verdict.
type verdict struct {
	why    string
	since  time.Time
	failed time.Time
}

// Tell implements [status.Teller].
func (d *Detector) Tell(u *status.Upstream) {
	d.mu.Lock()
	back, v, err := d.back, d.verdict, d.err
	d.mu.Unlock()
	u.Era, u.EraReason, u.EraSince = d.opts.Era.String(), v.why, v.since
	if t, ok := back.(status.Teller); ok {
		t.Tell(u)
	}
	if back == nil && err != nil && !errors.Is(err, mcp.ErrStarting) {
		u.LastError, u.LastErrorTime = err.Error(), v.failed
	}
	if d.opts.Launcher != nil {
		u.Transport = "command"
		tellProcesses(u, d.opts.Launcher.Processes())
	}
}

func tellProcesses(u *status.Upstream, all []*transport.Process) {
	for _, p := range all {
		if len(u.Processes) == status.MaxProcesses {
			u.ProcessesLeft++
			continue
		}
		one := status.Process{PID: p.PID(), Started: p.Started()}
		if one.PID > 0 {
			one.Memory, one.Children = transport.Memory(one.PID)
		}
		u.Processes = append(u.Processes, one)
	}
}
