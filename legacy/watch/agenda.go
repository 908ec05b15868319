package watch

import (
	"container/heap"
	"time"
)

// An agenda says which topics to look at when. A topic that was put on it again,
// or taken off by setting its due to 0, leaves its former appointment behind,
// which is passed over.
type agenda struct {
	heap appointments
}

type appointment struct {
	at time.Duration
	e  *tracked
}

func (a appointment) void() bool { return a.e.due != a.at }

// schedule has the loop look at e at a time.
func (w *Watch) schedule(e *tracked, at time.Duration) {
	e.due = at
	heap.Push(&w.agenda.heap, appointment{at, e})
}

// next returns when the first appointment is, 0 if there is none.
func (a *agenda) next() time.Duration {
	a.skipVoid()
	if len(a.heap) == 0 {
		return 0
	}
	return a.heap[0].at
}

// pop takes off the first topic that is due, nil if none is.
func (a *agenda) pop(now time.Duration) *tracked {
	a.skipVoid()
	if len(a.heap) == 0 || a.heap[0].at > now {
		return nil
	}
	return heap.Pop(&a.heap).(appointment).e
}

func (a *agenda) skipVoid() {
	for len(a.heap) > 0 && a.heap[0].void() {
		heap.Pop(&a.heap)
	}
}

// appointments is a heap.Interface, the earliest first.
type appointments []appointment

func (h appointments) Len() int           { return len(h) }
func (h appointments) Less(i, j int) bool { return h[i].at < h[j].at }
func (h appointments) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *appointments) Push(x any)        { *h = append(*h, x.(appointment)) }

func (h *appointments) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	(*h)[last] = appointment{}
	*h = (*h)[:last]
	return a
}
