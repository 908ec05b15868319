package audit

import (
	"net/netip"
	"strings"
	"time"
)

const (
	// refusalTime is the period in which refused credentials are told of.
	refusalTime = 10 * time.Second
	// maxRefusals limits the senders that have lines of their own in a period. With the line
	// for all others these are twelve lines in ten seconds, whatever the attempts and the
	// servers are: as many as the log has of one server. Anybody can send any number of
	// credentials, and must not fill a disk (CWE-779).
	maxRefusals = 11
)

// refusals are the credentials that were refused recently.
type refusals struct {
	of     map[sender]*refusal
	others int         // further ones since the last line about them
	timer  *time.Timer // has the writer settle; nil while there is nothing to settle
	until  time.Time   // when that is
}

// A sender is whose attempts a line is about.
type sender struct {
	server, reason string
	from           netip.Prefix
}

// A refusal is what is known of the attempts of one sender since the line about the first.
type refusal struct {
	last  Record
	again int
}

// Refusal returns the line about a credential for a server that was refused for a reason. name
// says what it was for, if that is no server.
func Refusal(server, reason, name, address string) *Record {
	return &Record{
		Time: time.Now(), Method: MethodAuthenticate, Kind: "credential", Name: name, Server: server, Decision: "deny", Reason: reason,
		Outcome: "refused", Address: address,
	}
}

// Refused adds a line for a credential that was refused. from is the network of whoever sent
// it, and why one of a fixed few reasons. The first attempt has its line at once. Those that
// follow from the same sender, with the same reason, have one line in ten seconds, with their
// number; so have all those of further senders together, if many send at once.
func (l *Log) Refused(r *Record, from netip.Prefix, why string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	rs := &l.refusals
	if rs.timer == nil {
		rs.until = r.Time.Add(refusalTime)
		rs.timer = time.AfterFunc(refusalTime, l.due.Send)
	}
	key := sender{r.Server, why, from}
	switch of := rs.of[key]; {
	case of != nil:
		of.again++
		of.last.Time = r.Time
	case len(rs.of) < maxRefusals:
		if rs.of == nil {
			rs.of = make(map[sender]*refusal)
		}
		kept := *r
		kept.Address = strings.Clone(r.Address) // not all of the request's head
		rs.of[key] = &refusal{last: kept}
		l.writeLocked(r)
		l.due.Send()
	default:
		rs.others++
	}
}

// settleLocked writes the lines about attempts that were repeated, if it is time, or if last
// says that there is no other. Senders that have not repeated theirs make room for others.
func (l *Log) settleLocked(now time.Time, last bool) {
	rs := &l.refusals
	if rs.timer == nil || !last && now.Before(rs.until) {
		return
	}
	rs.timer.Stop()
	rs.timer = nil
	for key, of := range rs.of {
		if of.again == 0 {
			delete(rs.of, key)
			continue
		}
		of.last.Times, of.again = of.again, 0
		l.writeLocked(&of.last)
	}
	if rs.others > 0 {
		r := Refusal("", "further credentials were refused, of senders without a line of their own", "", "")
		r.Times = rs.others
		l.writeLocked(r)
		rs.others = 0
	}
	if len(rs.of) > 0 && !last {
		rs.until = now.Add(refusalTime)
		rs.timer = time.AfterFunc(refusalTime, l.due.Send)
	}
}
