package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// An entry is a line of the ledger.
type entry struct {
	Seq int   `json:"seq"` // from 1, of one process
	At  int64 `json:"at"`  // Unix time in nanoseconds
	// What is start, touch, change, listen, refuse, sent, unsent (the SDK had no
	// way to send), ended, cut, call, asked, answer or cancelled.
	What    string  `json:"what"`
	PID     int     `json:"pid,omitempty"`     // of start
	Method  string  `json:"method,omitempty"`  // of sent and unsent
	Kind    string  `json:"kind,omitempty"`    // of change; of ended: graceful or abrupt, where the server ended it
	URI     string  `json:"uri,omitempty"`     //
	Version int     `json:"version,omitempty"` // of touch: what a read returns from then on
	Stream  string  `json:"stream,omitempty"`  // the listen stream, see listens
	Filter  *filter `json:"filter,omitempty"`  // of listen: what was wanted; of a sent acknowledgment: what was granted
	Nonce   string  `json:"nonce,omitempty"`   // of call, asked, answer and cancelled: what the call was given
	Round   int     `json:"round,omitempty"`   // of asked: from 1
	Answer  string  `json:"answer,omitempty"`  // of answer: what the client gave, or else its action
	Err     string  `json:"err,omitempty"`
}

// A ledger keeps entries. Safe for concurrent use.
type ledger struct {
	// mu guards the fields below, and serializes writes to file: a line is whole,
	// and lines are in order. This server has no hurry.
	mu      sync.Mutex
	entries []entry
	file    *os.File // nil if the ledger is kept in memory alone
	// former are the last versions of what processes before this one touched.
	// Set by openLedger, read-only after.
	former map[string]int
}

func openLedger(name string) (*ledger, error) {
	l := &ledger{former: make(map[string]int)}
	if name == "" {
		return l, nil
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the ledger: %w", err)
	}
	l.file = f
	for lines := json.NewDecoder(f); ; {
		var e entry
		err := lines.Decode(&e)
		if errors.Is(err, io.EOF) {
			return l, nil
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("reading the ledger: %w", err), f.Close())
		}
		if e.What == "touch" {
			l.former[e.URI] = e.Version
		}
	}
}

// add numbers and dates e and keeps it. The kernel has it when add returns: a
// process that is killed takes nothing with it.
func (l *ledger) add(e entry) entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Seq, e.At = len(l.entries)+1, time.Now().UnixNano()
	l.entries = append(l.entries, e)
	if l.file == nil {
		return e
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = l.file.Write(append(line, '\n'))
	}
	if err != nil { // a ledger with holes proves nothing
		fmt.Fprintln(os.Stderr, "modern-go: writing the ledger:", err)
		os.Exit(1)
	}
	return e
}

// after returns the entries behind a sequence number.
func (l *ledger) after(seq int) []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	seq = min(max(seq, 0), len(l.entries))
	return append([]entry{}, l.entries[seq:]...)
}

func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close() // every line was checked
		l.file = nil
	}
}
