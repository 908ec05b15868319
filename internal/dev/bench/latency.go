//go:build linux

package main

// The targets of latency, in the order of an array.
const (
	direct = iota
	proxied
	bridged
	targetCount
)

// latency measures the time that the party in the middle adds to a call. Calls
// take turns one by one: what else the machine does hits all of them alike.
func (b *bench) latency() error {
	c, err := b.hireCallers()
	if err != nil {
		return err
	}
	const size = 100
	var targets [targetCount]*target
	for i, to := range [targetCount]*child{c.upstream, c.proxy, c.gateway} {
		request := legacyCall(to.addr, "/mcp", size)
		if i == bridged {
			request = modernCall(to.addr, "/mcp/http", size)
		}
		if targets[i], err = newTarget(to, to.addr, request, size, 1); err != nil {
			return err
		}
		defer targets[i].close()
	}
	var added pairs
	for i := -1; i < b.o.rounds; i++ { // the first round warms up
		p50, err := p50s(targets)
		if err != nil {
			return err
		}
		if i >= 0 {
			added.add(p50[bridged]-p50[direct], p50[proxied]-p50[direct])
		}
	}
	b.table.add(row{what: "latency added to a call, p50", got: added.ratio(), unit: "×", most: 1, goal: 0.85, detail: added.detail("ReverseProxy")})
	return c.stop(b.ctx)
}

// p50s returns each target's median, in nanoseconds.
func p50s(targets [targetCount]*target) (p50 [targetCount]float64, err error) {
	const calls = 2000
	var took [targetCount][]float64
	for range calls {
		for i, t := range targets {
			d, err := t.timed()
			if err != nil {
				return p50, err
			}
			took[i] = append(took[i], float64(d))
		}
	}
	for i := range took {
		p50[i] = median(took[i])
	}
	return p50, nil
}
