package pin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// A Folder is a Store of files, one of each server in the folder pins below it. It is the
// user's folder for persistent state.
type Folder string

// again is how often a lock is tried that another process holds.
const again = 5 * time.Millisecond

// file returns the path of a server's file. The server's name consists of letters, digits,
// '.', '_' and '-', and begins with no '.'.
func (d Folder) file(server string) string { return filepath.Join(string(d), "pins", server+".json") }

// Load implements [Store].
func (d Folder) Load(_ context.Context, server string) (*File, string, error) {
	f, version, err := d.load(server)
	if err != nil {
		return nil, "", fmt.Errorf("reading the pinned tools of server %q in %s: %w", server, d.file(server), err)
	}
	return f, version, nil
}

func (d Folder) load(server string) (*File, string, error) {
	data, version, err := d.read(server)
	if err != nil || version == "" {
		return newFile(server), "", err
	}
	f, err := read(server, data)
	return f, version, err
}

// read returns the text of a file, and its version: the stamp, and a digest, since stamps are
// coarse. The version is empty if there is no file.
func (d Folder) read(server string) (data []byte, version string, err error) {
	info, err := os.Stat(d.file(server))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "", nil
	case err != nil:
		return nil, "", err
	case info.Size() > maxFile:
		return nil, "", fmt.Errorf("it is over %d bytes; remove it to begin anew", maxFile)
	}
	if data, err = os.ReadFile(d.file(server)); err != nil {
		return nil, "", err
	}
	return data, fmt.Sprintf("%s %x", stamp(info), sha256.Sum256(data)), nil
}

func stamp(info fs.FileInfo) string { return fmt.Sprint(info.ModTime().UnixNano(), ".", info.Size()) }

// Stale implements [Store].
func (d Folder) Stale(server, version string, _ time.Time) bool {
	info, err := os.Stat(d.file(server))
	if err != nil {
		return version != ""
	}
	return !strings.HasPrefix(version, stamp(info)+" ")
}

// Swap implements [Store].
func (d Folder) Swap(ctx context.Context, f *File, version string) (now string, err error) {
	if now, err = d.swap(ctx, f, version); err != nil && !errors.Is(err, ErrReplaced) {
		err = fmt.Errorf("storing the pinned tools of server %q: %w", f.Server, err)
	}
	return now, err
}

func (d Folder) swap(ctx context.Context, f *File, version string) (string, error) {
	text, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return "", err
	}
	path := d.file(f.Server)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	lock := flock.New(filepath.Join(filepath.Dir(path), ".lock"), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, again); err != nil {
		return "", err
	}
	defer func() { _ = lock.Close() }() // the file stays, and is empty
	_, is, err := d.read(f.Server)
	switch {
	case err != nil:
		return "", err
	case digestOf(is) != digestOf(version):
		return "", ErrReplaced
	}
	if err := replace(path, text); err != nil {
		return "", err
	}
	_, is, err = d.read(f.Server)
	return is, err
}

// digestOf returns the digest in a version.
func digestOf(version string) string {
	_, digest, _ := strings.Cut(version, " ")
	return digest
}

// replace writes a file as a whole, or leaves nothing behind.
func replace(path string, text []byte) error {
	temporary := path + "." + rand.Text()[:8]
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync() // or the name may outlive a power cut, and the text not
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		_ = os.Remove(temporary) // err says more
	}
	return err
}
