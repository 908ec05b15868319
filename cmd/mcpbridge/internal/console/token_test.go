package console

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A token is for the commands of the same user at the same port, and goes with the process that has
// made it.
func TestStoreToken(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	file, err := StoreToken(dir, "2527", "first")
	if err != nil {
		t.Fatal(err)
	}
	again, err := StoreToken(dir, "2527", "second") // of the next process
	if err != nil || again != file {
		t.Fatalf("StoreToken = %s, %v, want %s", again, err, file)
	}
	for _, path := range []string{dir, file} {
		if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v, %v, want that others can't read it", path, info.Mode(), err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	DropToken(file, "first") // the process that was replaced ends
	a := Admin{Address: Address{URL: "http://127.0.0.1:2527"}}
	if err := a.LearnToken(dir); err != nil || a.Token != "second" {
		t.Errorf("LearnToken = %v, and learns %q, want the second", err, a.Token)
	}
	DropToken(file, "second")
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there still: %v", err)
	}
	if _, err := StoreToken("", "2527", "x"); !errors.Is(err, ErrNoFolder) {
		t.Errorf("StoreToken without a folder = %v", err)
	}
}

// What can't be stored leaves nothing behind.
func TestStoreTokenWhereItCant(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(tokenFile(dir, "1"), "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	if file, err := StoreToken(dir, "1", "x"); err == nil || file != "" {
		t.Errorf("StoreToken = %s, %v where there is a folder", file, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// The token of a port is read for this machine alone: no other is ever sent it.
func TestLearnToken(t *testing.T) {
	dir := t.TempDir()
	if _, err := StoreToken(dir, "2527", "made"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, url, had, dir, want string
	}{
		{"this machine", "http://127.0.0.1:2527", "", dir, "made"},
		{"its name", "http://localhost:2527", "", dir, "made"},
		{"IPv6", "https://[::1]:2527", "", dir, "made"},
		{"another port", "http://127.0.0.1:2528", "", dir, ""},
		{"another machine", "http://192.0.2.1:2527", "", dir, ""},
		{"a name that may be anywhere", "http://localhost.example.com:2527", "", dir, ""},
		{"one is given", "http://127.0.0.1:2527", "given", dir, "given"},
		{"no folder", "http://127.0.0.1:2527", "", "", ""},
	} {
		a := Admin{Address: Address{URL: tt.url}, Token: tt.had}
		if err := a.LearnToken(tt.dir); err != nil || a.Token != tt.want {
			t.Errorf("%s: LearnToken = %v, and the token is %q, want %q", tt.name, err, a.Token, tt.want)
		}
	}
}

// What is no file of a token is not read, and the person is told whose it has to be.
func TestLearnTokenOfOtherFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(tokenFile(dir, "1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tokenFile(dir, "2"), []byte(strings.Repeat("x", maxToken+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, port := range []string{"1", "2"} {
		a := Admin{Address: Address{URL: "http://127.0.0.1:" + port}}
		want := "reading the token of the admin address from " + tokenFile(dir, port) + ": it is no file of a token; run this as the user that mcpbridge runs as"
		if err := a.LearnToken(dir); err == nil || err.Error() != want || a.Token != "" {
			t.Errorf("LearnToken = %v, and learns %q, want %s", err, a.Token, want)
		}
	}
}
