package console

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
)

// ErrNoFolder says that there is no folder for a token that was made.
var ErrNoFolder = errors.New("there is no folder for it")

// maxToken bounds the file of a token, in bytes.
const maxToken = 1 << 10

// tokenFile is where the token is that serve has made for its admin address. Two that run
// at the same time have two ports.
func tokenFile(dir, port string) string { return filepath.Join(dir, "admin-"+port+".token") }

// StoreToken writes the token of the admin address with a port, for the commands of the same
// user, and returns the file, which nobody else can read. It replaces that of a process
// before.
func StoreToken(dir, port, token string) (file string, err error) {
	if dir == "" {
		return "", ErrNoFolder
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, ".admin-*") // mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(token)
	if err = errors.Join(err, f.Close()); err == nil {
		file = tokenFile(dir, port)
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // it is not used
		return "", err
	}
	return file, nil
}

// DropToken removes the file of a token, unless another process has replaced it.
func DropToken(file, token string) {
	if text, err := os.ReadFile(file); err == nil && string(text) == token {
		_ = os.Remove(file) // a file of an ended process is of no use to anybody
	}
}

// LearnToken sets the token that the process at the address has made, if a wants one and
// this user may read it. No other machine is ever sent it.
func (a *Admin) LearnToken(dir string) error {
	u, err := url.Parse(a.Address.URL)
	if a.Token != "" || dir == "" || err != nil || !onLoopback(u.Hostname()) {
		return nil
	}
	file := tokenFile(dir, u.Port())
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil // it made none
	case err == nil && (!info.Mode().IsRegular() || info.Size() > maxToken):
		err = errors.New("it is no file of a token")
	case err == nil:
		var text []byte
		text, err = os.ReadFile(file)
		a.Token = string(text)
	}
	if err != nil {
		return fmt.Errorf("reading the token of the admin address from %s: %w; run this as the user that mcpbridge runs as", file, err)
	}
	return nil
}

func onLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// Port returns the port of an address that is listened on.
func Port(addr net.Addr) string {
	_, port, _ := net.SplitHostPort(addr.String()) // it is one of TCP
	return port
}
