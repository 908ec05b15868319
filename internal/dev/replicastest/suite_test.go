package replicastest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
)

type inMemory struct{ b *replicastest.Broker }

func (w inMemory) Engine(t *testing.T) (replicas.Engine, func(bool)) {
	e := w.b.Engine(t, member.Options{})
	return e, e.SetFrozen
}

func (w inMemory) Stop() { w.b.SetAway(true) }

func (w inMemory) Start(empty bool) {
	if empty {
		w.b.Empty()
	}
	w.b.SetAway(false)
}

func TestSuite(t *testing.T) {
	replicastest.Suite(t, synctest.Test, func(*testing.T) replicastest.World { return inMemory{replicastest.New()} })
}

func TestAloneIsFresh(t *testing.T) {
	if alone := replicastest.Alone(replicas.Replica{Instance: "a"}); !alone.View().Fresh(time.Now()) {
		t.Error("the view of a replica that is alone is not fresh")
	}
}
