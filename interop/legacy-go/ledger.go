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
	// What is start, touch, change, sent, unsent (the SDK had no way to send),
	// subscribe, unsubscribe, refuse, cut, call, answer or cancelled (of wait).
	What    string `json:"what"`
	PID     int    `json:"pid,omitempty"`     // of start
	Method  string `json:"method,omitempty"`  // of sent and unsent
	Kind    string `json:"kind,omitempty"`    // of change
	URI     string `json:"uri,omitempty"`     //
	Version int    `json:"version,omitempty"` // of touch: what a read returns from then on
	Session string `json:"session,omitempty"` // see board.label
	Nonce   string `json:"nonce,omitempty"`   // of call, answer and cancelled: what the call was given
	Answer  string `json:"answer,omitempty"`  // of answer: the nonce that the client gave, or else its action
	Err     string `json:"err,omitempty"`
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
	if name == "" {
		return &ledger{}, nil
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the ledger: %w", err)
	}
	l := &ledger{file: f, former: make(map[string]int)}
	lines := json.NewDecoder(f)
	for {
		var e entry
		switch err := lines.Decode(&e); {
		case errors.Is(err, io.EOF):
			return l, nil
		case err != nil:
			return nil, errors.Join(fmt.Errorf("reading the ledger: %w", err), f.Close())
		case e.What == "touch":
			l.former[e.URI] = e.Version
		}
	}
}

// add numbers and dates e and keeps it. It is in the kernel's hands when add
// returns: a process that is killed takes nothing with it.
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
		fmt.Fprintln(os.Stderr, "legacy-go: writing the ledger:", err)
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
	}
}
