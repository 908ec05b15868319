//go:build linux

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// logged is how many log messages a tool writes before its result.
const logged = 200_000

// logs measures how long a call of a command takes that writes many log messages before its
// result, beside the same command without a gateway.
func (b *bench) logs() error {
	c := &callers{}
	var err error
	if c.gateway, err = c.hire(b, "gateway", "-upstream", "127.0.0.1:9"); err != nil { // none
		return err
	}
	// What the client has not asked for is read at a bounded rate, call after call.
	if err = b.logsOf(c.gateway, "error", row{most: 40, goal: 20}); err == nil {
		err = b.logsOf(c.gateway, "info", row{most: 10, goal: 5})
	}
	return errors.Join(err, c.stop(b.ctx))
}

func (b *bench) logsOf(gateway *child, level string, budget row) error {
	t, err := newTarget(gateway, gateway.addr, modernLog(gateway.addr, level), 100, 1)
	if err != nil {
		return err
	}
	defer t.close()
	self, err := startLogger()
	if err != nil {
		return err
	}
	var took pairs
	for range max(b.o.rounds/3, 1) {
		ours, err := t.timed()
		if err != nil {
			return errors.Join(err, self.stop())
		}
		theirs, err := self.timed()
		if err != nil {
			return errors.Join(err, self.stop())
		}
		took.add(float64(ours), float64(theirs))
	}
	b.table.add(row{what: fmt.Sprintf("time of a call that writes %d log messages, level %s", logged, level), got: took.ratio(), unit: "×",
		most: budget.most, goal: budget.goal, detail: took.detail("directly")})
	return self.stop()
}

// modernLog is what a modern client posts to call the tool that logs.
func modernLog(host, level string) []byte {
	name := fmt.Sprintf("log_%d", logged)
	return post(host, "/mcp/stdio", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"`+name+`",`+
		envelope[:len(envelope)-1]+`,"io.modelcontextprotocol/logLevel":"`+level+`"}}}`,
		"MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: "+name)
}

// A logger is the command that logs, with the parent as its client.
type logger struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startLogger() (*logger, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	l := &logger{cmd: exec.Command(self, "-role", "stdio")}
	if l.in, err = l.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	l.out = bufio.NewReaderSize(out, 64<<10)
	return l, l.cmd.Start()
}

// timed makes one call and returns how long it took.
func (l *logger) timed() (time.Duration, error) {
	start := time.Now()
	_, err := fmt.Fprintf(l.in, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"log_%d"}}`+"\n", logged)
	for err == nil {
		var line []byte
		if line, err = l.out.ReadSlice('\n'); bytes.Contains(line, []byte(`"result"`)) {
			break
		}
	}
	return time.Since(start), err
}

func (l *logger) stop() error {
	_ = l.in.Close()
	return l.cmd.Wait()
}
