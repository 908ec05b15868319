//go:build linux

package main

import (
	"net"
	"strings"
	"testing"
	"time"
)

func TestVerdict(t *testing.T) {
	for _, tt := range []struct {
		name string
		row  row
		want string // in the error; empty for none
	}{
		{"goal reached", row{what: "calls", got: 0.5, most: 1, goal: 0.6}, ""},
		{"between", row{what: "calls", got: 1, most: 1, goal: 0.6}, ""},
		{"over", row{what: "calls", got: 1.01, unit: "×", most: 1, goal: 0.6}, "calls: 1.01× is over the budget of 1.00×"},
		{"no budget", row{what: "calls", got: 9}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var tab table
			tab.add(tt.row)
			got := ""
			if err := tab.verdict(); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("verdict() = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPairs(t *testing.T) {
	var p pairs
	for _, v := range [][2]float64{{2, 1}, {9, 3}, {4, 1}, {10, 1}} {
		p.add(v[0], v[1])
	}
	if got := p.ratio(); got != 3.5 {
		t.Errorf("ratio() = %v, want 3.5, between the two in the middle", got)
	}
}

// An event counts once, however the reads fall.
func TestReadersCount(t *testing.T) {
	const stream = "HTTP/1.1 200 OK\r\n\r\n5\r\ndata: {}\n\n:\n\nevent: message\ndata: \"data: x\"\n\n"
	for cut := range len(stream) {
		r := &readers{there: make(chan time.Time, 1)}
		r.expect(2)
		client, server := net.Pipe()
		done := make(chan struct{})
		go func() { defer close(done); r.read(client) }()
		for _, part := range []string{stream[:cut], stream[cut:]} {
			if _, err := server.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
		_ = server.Close()
		<-done
		if got := r.count.Load(); got != 2 || len(r.there) != 1 {
			t.Errorf("cut at %d (%q): counted %d events, want 2", cut, strings.TrimSpace(stream[:cut]), got)
		}
	}
}
