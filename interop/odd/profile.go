package main

import (
	"io"
)

// A profile is what a process takes with the first call of a tool, as that of a browser, and
// keeps. It is nil if there is none.
type profile struct {
	file  string
	alive io.Closer // a lock that a process has from its start on; nil if another one had it
	taken io.Closer // nil before the first call
}

// newProfile notes in the file's .beside that another process runs.
func newProfile(file string) (*profile, error) {
	if file == "" {
		return nil, nil
	}
	p := &profile{file: file}
	var err error
	if p.alive, err = lockFile(file + ".alive"); err != nil {
		return p, note(file + ".beside")
	}
	return p, nil
}

// take returns an error if another process has the profile.
func (p *profile) take() (err error) {
	if p == nil || p.taken != nil {
		return nil
	}
	p.taken, err = lockFile(p.file)
	return err
}

// close gives all back.
func (p *profile) close() {
	if p == nil {
		return
	}
	for _, held := range []io.Closer{p.taken, p.alive} {
		if held != nil {
			_ = held.Close() // the process ends
		}
	}
}
