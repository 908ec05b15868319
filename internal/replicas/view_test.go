package replicas_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

func view(instances ...string) *replicas.View {
	v := &replicas.View{Heard: time.Now()}
	for _, i := range instances {
		v.Members = append(v.Members, replicas.Replica{Instance: i})
	}
	return v
}

func TestPickIsEven(t *testing.T) {
	v := view("a3f1", "b7c2", "c9d4")
	count := make(map[string]int)
	for i := range 9000 {
		count[v.Pick("profile "+strconv.Itoa(i)).Instance]++
	}
	for instance, n := range count {
		if n < 2700 || n > 3300 {
			t.Errorf("%s is picked %d times of 9000, want about 3000", instance, n)
		}
	}
}

func TestPickMovesOnlyWhatALostReplicaHad(t *testing.T) {
	before, after := view("a3f1", "b7c2", "c9d4"), view("a3f1", "c9d4")
	for i := range 1000 {
		name := "profile " + strconv.Itoa(i)
		was, is := before.Pick(name).Instance, after.Pick(name).Instance
		if was != "b7c2" && was != is {
			t.Errorf("Pick(%q) moved from %s to %s, which both live", name, was, is)
		}
	}
}

func TestPickAvoidsThoseThatDrain(t *testing.T) {
	v := view("a3f1", "b7c2")
	v.Members[0].Draining = true
	for i := range 100 {
		if got := v.Pick(strconv.Itoa(i)).Instance; got != "b7c2" {
			t.Fatalf("Pick = %s, which drains", got)
		}
	}
	v.Members[1].Draining = true
	if got := v.Pick("any").Instance; got == "" {
		t.Error("Pick = nobody if all drain")
	}
	alone := &replicas.View{Self: replicas.Replica{Instance: "self"}}
	if got := alone.Pick("any").Instance; got != "self" {
		t.Errorf("Pick without members = %q, want this replica", got)
	}
}

func TestMember(t *testing.T) {
	v := view("a", "b", "d")
	if r, ok := v.Member("b"); !ok || r.Instance != "b" {
		t.Errorf("Member(b) = %+v, %v", r, ok)
	}
	if r, ok := v.Member("c"); ok {
		t.Errorf("Member(c) = %+v, want none", r)
	}
}

func TestKnowsAll(t *testing.T) {
	now := time.Now()
	for name, tt := range map[string]struct {
		v    replicas.View
		want bool
	}{
		"heard":                               {replicas.View{Heard: now}, true},
		"never heard":                         {replicas.View{}, false},
		"heard again, and others may come":    {replicas.View{Heard: now, Gathered: now.Add(time.Millisecond)}, false},
		"heard again, and others have come":   {replicas.View{Heard: now, Gathered: now}, true},
		"away: what was heard before is good": {replicas.View{Heard: now.Add(-time.Hour), Away: now}, true},
	} {
		if got := tt.v.KnowsAll(now); got != tt.want {
			t.Errorf("%s: KnowsAll = %v, want %v", name, got, tt.want)
		}
	}
}

func TestFresh(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		name string
		v    replicas.View
		want bool
	}{
		{"heard a moment before", replicas.View{Heard: now.Add(-time.Second)}, true},
		{"heard three heartbeats before", replicas.View{Heard: now.Add(-3 * time.Second)}, false},
		{"never heard", replicas.View{}, false},
		{"away", replicas.View{Heard: now, Away: now}, false},
	} {
		if got := tt.v.Fresh(now); got != tt.want {
			t.Errorf("%s: Fresh = %v, want %v", tt.name, got, tt.want)
		}
	}
}
