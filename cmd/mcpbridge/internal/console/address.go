package console

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// ParseAddress reads an address as people write it.
func ParseAddress(text string) (a Address, err error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		a.Socket = path
		return a, nil
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return a, fmt.Errorf("%q is no address; write host:port, a URL of http or https, or unix: and the path of a socket", text)
	case u.User != nil || u.RawQuery != "":
		return a, errors.New("an address has no credentials; set MCPBRIDGE_ADMIN_TOKEN")
	}
	a.URL = u.Scheme + "://" + u.Host
	return a, nil
}
