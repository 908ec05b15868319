package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// States are how those answered that a configuration names.
type States struct {
	Servers  []State        `json:"servers"` // and groups
	Groups   []GroupNames   `json:"groups,omitempty"`
	Replicas *ReplicaStates `json:"replicas,omitempty"` // nil without replicas
}

// A State is how a server answered.
type State struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Ready  bool   `json:"ready"`
	Reason string `json:"reason,omitempty"`
	// Unmatched are its keys tools and prompts that are about nothing that it has, or clash.
	Unmatched []string `json:"unmatched,omitempty"`
}

// ReplicaStates are how the replicas that live take to a configuration.
type ReplicaStates struct {
	By     string         `json:"by"`              // the engine, or the names
	Error  string         `json:"error,omitempty"` // why those could not be asked
	Living []ReplicaState `json:"living"`
}

// A ReplicaState is that of one of them.
type ReplicaState struct {
	Instance string       `json:"instance,omitempty"`
	Addr     string       `json:"addr"`
	Version  string       `json:"version,omitempty"`
	Draining bool         `json:"draining,omitempty"`
	Accepts  bool         `json:"accepts"`       // it, and is accepted
	Clock    float64      `json:"clock_seconds"` // by which its clock is ahead
	Differs  []Difference `json:"differs,omitempty"`
}

// A Difference is one thing that differs.
type Difference struct {
	What string `json:"what"`
	Text string `json:"text"`
}

// NewReplicaStates returns what replicas have said. hide takes secrets out of a text.
func NewReplicaStates(s *Replicas, c replicas.Comparison, hide func(string) string) *ReplicaStates {
	out := &ReplicaStates{By: s.by(), Living: []ReplicaState{}}
	if c.Away != nil {
		out.Error = hide(c.Away.Error())
	}
	for _, m := range c.Members {
		r := ReplicaState{Instance: m.Instance, Addr: m.Addr, Version: m.Version, Draining: m.Draining, Accepts: len(m.Differs) == 0, Clock: m.Clock.Seconds()}
		for _, d := range m.Differs {
			r.Differs = append(r.Differs, Difference{d.What, hide(d.Text)})
		}
		out.Living = append(out.Living, r)
	}
	return out
}

// Err says what can't be used; nil if all can.
func (s *States) Err() error {
	down := 0
	for _, one := range s.Servers {
		if !one.Ready {
			down++
		}
	}
	var err error
	if down > 0 {
		err = fmt.Errorf("%d of %d servers can't be used; probe says more of each: mcpbridge probe", down, len(s.Servers))
	}
	return errors.Join(err, s.Replicas.err())
}

func (r *ReplicaStates) err() error {
	switch refusing := r.refusing(); {
	case r == nil:
		return nil
	case r.Error != "":
		return errors.New("the replicas can't be asked for: a process with this configuration would serve by itself")
	case refusing > 0:
		return fmt.Errorf("%d of %d living replicas and this configuration do not go together: requests for sessions of the other would fail", refusing, len(r.Living))
	}
	return nil
}

func (r *ReplicaStates) refusing() (n int) {
	if r == nil {
		return 0
	}
	for _, one := range r.Living {
		if !one.Accepts {
			n++
		}
	}
	return n
}

// Print prints them into a table for people.
func (s *States) Print(tw io.Writer) {
	_, _ = output.Printf(tw, "\nSERVER\tSTATE\tREASON\n")
	for _, one := range s.Servers {
		_, _ = output.Printf(tw, "%s\t%s\t%s\n", one.Name, one.State, one.Reason)
	}
	for _, one := range s.Servers {
		for _, text := range one.Unmatched {
			_, _ = output.Printf(tw, "%s\twarning\t%s\n", one.Name, text)
		}
	}
	printNames(tw, s.Groups)
	s.Replicas.print(tw)
}

func (r *ReplicaStates) print(tw io.Writer) {
	if r == nil {
		return
	}
	state := "ready"
	if r.Error != "" {
		state = "down"
	}
	_, _ = output.Printf(tw, "\nREPLICAS BY\tSTATE\tREASON\n%s\t%s\t%s\n", r.By, state, r.Error)
	if len(r.Living) == 0 {
		return
	}
	_, _ = output.Printf(tw, "\nREPLICA\tADDRESS\tVERSION\tACCEPTS\tREASON\n")
	for _, one := range r.Living {
		accepts := "no"
		if one.Accepts {
			accepts = "yes"
		}
		_, _ = output.Printf(tw, "%s\t%s\t%s\t%s\t%s\n", cmp.Or(one.Instance, "-"), one.Addr, cmp.Or(one.Version, "-"), accepts, one.reasons())
	}
}

// reasons are on one line.
func (s *ReplicaState) reasons() string {
	var all []string
	for _, d := range s.Differs {
		all = append(all, d.What+": "+d.Text)
	}
	if s.Draining {
		all = append(all, "it is about to end")
	}
	return strings.Join(all, "; ")
}
