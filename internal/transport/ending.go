package transport

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
)

// exitGrace is how long a connection that has ended may take to say how.
const exitGrace = 500 * time.Millisecond

// A mortal is a connection whose end has a story: a child process.
type mortal interface {
	Done() <-chan struct{} // closed when Err says how it ended
	Err() error
}

// Ending names the end of conn for people, err being what its Read returned.
// Secrets that a child wrote in its last words are not in it.
func Ending(conn Conn, err error) error {
	var closed *CloseError
	if errors.As(err, &closed) {
		return closed
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("its connection broke: %w", err)
	}
	if m, ok := innermost(conn).(mortal); ok {
		t := time.NewTimer(exitGrace)
		defer t.Stop()
		select {
		case <-m.Done():
			if err := Exited(m.Err()); err != nil {
				return err
			}
		case <-t.C:
		}
	}
	return errors.New("it closed the connection, or exited" + Noise(conn))
}

// Noise says, after a semicolon, what a child has written to its standard output that
// is no message: the best hint there is if it does not answer. It is empty if there was
// nothing.
func Noise(conn Conn) string {
	c, ok := innermost(conn).(*Command)
	if !ok {
		return ""
	}
	line := c.noise.Load()
	if line == nil {
		return ""
	}
	return fmt.Sprintf("; it wrote %q to its standard output, where only messages belong", shortened(withoutSecrets(*line)))
}

func shortened(text string) string {
	const most = 100
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// Exited says how a child ended, and its last words: they are the best hint there
// is. It returns nil if err does not say, or says that the child ended well.
func Exited(err error) error {
	var exit *ExitError
	if !errors.As(err, &exit) {
		return nil
	}
	if len(exit.Stderr) == 0 {
		return fmt.Errorf("it ended: %s", exit.Status)
	}
	words := withoutSecrets(strings.Join(exit.Stderr, "\n"))
	return fmt.Errorf("it ended: %s; its last words: %q", exit.Status, lastPart(words))
}

// lastPart bounds what of a server's words goes into a message, from their end.
func lastPart(text string) string {
	const most = 300
	if len(text) <= most {
		return text
	}
	return "…" + strings.ToValidUTF8(text[len(text)-most:], "")
}

// secrets are what a server may write that is nobody's business who only calls
// it: credentials in headers, in URLs, after their names, or by their looks.
var secrets = []struct {
	like *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+\S+`), "$1 [hidden]"},
	{regexp.MustCompile(`(://[^/\s:@]*:)[^/\s@]+@`), "$1[hidden]@"},
	{regexp.MustCompile(`(?i)([\w-]*(?:token|secret|passw(?:or)?d|api[_-]?key|credential|authorization)[\w-]*["']?\s*[=:]\s*["']?)[^\s"',;]+`), "$1[hidden]"},
	{regexp.MustCompile(`\b(?:sk|pk|ghp|gho|ghs|github_pat|xox[abp]|eyJ|AKIA|glpat)[-_A-Za-z0-9.]{12,}`), "[hidden]"},
}

func withoutSecrets(text string) string {
	for _, s := range secrets {
		text = s.like.ReplaceAllString(text, s.as)
	}
	return text
}
