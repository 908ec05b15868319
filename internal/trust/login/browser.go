package login

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// ErrNoBrowser says that no browser can be opened.
var ErrNoBrowser = errors.New("there is no browser here")

// browserStart is how long a command may take to say that there is no browser.
const browserStart = time.Second

// Browser returns a function that opens a URL in the browser: with the command in BROWSER,
// which gets the URL as its last argument or in place of %s, or with that of the system. The
// error is [ErrNoBrowser].
func Browser(environ []string) func(url string) error {
	return func(url string) error {
		argv, err := browserCommand(runtime.GOOS, environ, url)
		if err != nil {
			return err
		}
		cmd := exec.Command(argv[0], argv[1:]...) // without a shell, because a URL may have any character
		cmd.Env = environ
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("%w: %s can't be run", ErrNoBrowser, argv[0])
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }() // ends with the command, which may be the browser itself
		select {
		case err := <-ended:
			if err != nil {
				return fmt.Errorf("%w: %s fails", ErrNoBrowser, argv[0])
			}
		case <-time.After(browserStart):
		}
		return nil
	}
}

func browserCommand(goos string, environ []string, url string) ([]string, error) {
	first, _, _ := strings.Cut(variable(environ, "BROWSER"), ":")
	if words := strings.Fields(first); len(words) > 0 {
		if at := slices.Index(words, "%s"); at >= 0 {
			words[at] = url
			return words, nil
		}
		return append(words, url), nil
	}
	switch goos {
	case "darwin":
		return []string{"open", url}, nil
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler", url}, nil
	}
	if variable(environ, "DISPLAY") == "" && variable(environ, "WAYLAND_DISPLAY") == "" {
		return nil, ErrNoBrowser
	}
	return []string{"xdg-open", url}, nil
}

// variable returns the first value of a name.
func variable(environ []string, name string) string {
	for _, entry := range environ {
		if n, value, _ := strings.Cut(entry, "="); n == name {
			return value
		}
	}
	return ""
}
