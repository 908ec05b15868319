package transport

import (
	"testing"
	"time"
)

// The system tells what a child has read, even after its end.
func TestU02UnreadInput(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		read         bool
	}{
		{"a child that reads", "read line; sleep 60", true},
		{"one that is still starting", "sleep 60", false},
		{"one that has read and ended", "read line; exit 3", true},
		{"one that has ended before it read", "sleep 1; exit 3", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := NewLauncher(func() (Conn, error) {
				return StartCommand(CommandOptions{Argv: []string{"sh", "-c", tt.script}, CloseGrace: 50 * time.Millisecond})
			}, nil)
			defer l.Close()
			p, err := l.Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = p.Close() }()
			if p.HasRead() {
				t.Error("it has read before anything was written")
			}
			if err := p.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)); err != nil {
				t.Fatal(err)
			}
			p.EndsWithin(3 * time.Second)
			for deadline := time.Now().Add(patience); p.HasRead() != tt.read && time.Now().Before(deadline); {
				time.Sleep(10 * time.Millisecond)
			}
			if got := p.HasRead(); got != tt.read {
				t.Errorf("HasRead() = %v, want %v", got, tt.read)
			}
		})
	}
}

// When a kept process ends, lost is called, and Dial does not return the process.
func TestU02KeptProcessThatEnds(t *testing.T) {
	script := "exit 3"
	l := NewLauncher(func() (Conn, error) { return StartCommand(CommandOptions{Argv: []string{"sh", "-c", script}}) }, nil)
	defer l.Close()
	lost := make(chan error, 1)
	if err := l.Prestart(func(err error) { lost <- err }); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-lost:
		if want := "it ended: exit status 3"; err == nil || err.Error() != want {
			t.Errorf("lost = %v, want %s", err, want)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("lost was not called")
	}
	script = "sleep 60"
	p, err := l.Dial(t.Context())
	if err != nil || p.hasEnded() {
		t.Fatalf("Dial = %v, %v, want a process that runs", p, err)
	}
	_ = p.Close()
}
