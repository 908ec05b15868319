package audit

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxText limits each text of a line, which a client or a file may have chosen, in bytes.
const maxText = 512

// maxNames limits the names in one line of what has changed.
const maxNames = 100

// The methods of lines that are about no message of a client.
const (
	MethodStart        = "start"        // the process serves
	MethodStop         = "stop"         // it does not any more
	MethodReload       = "reload"       // the configuration was read again
	MethodAuthenticate = "authenticate" // a credential was refused
	MethodEnd          = "end"          // a session or a stream has ended
	MethodPin          = "pin"          // definitions of tools were accepted, or are not
	MethodRestart      = "restart"      // a server began anew, since somebody wanted it
	MethodCancelTask   = "cancel-task"  // a task was cancelled, since somebody wanted it
	MethodLogin        = "login"        // a principal has logged in at a server, or somebody else has tried to
	MethodLogout       = "logout"       // such a login was ended
)

// A Record is one line. Empty strings and zeros are omitted.
type Record struct {
	Time      time.Time
	Principal string
	Client    string // the client's name and version
	Session   string // a hash, which does not grant access
	Server    string
	Group     string // through which the request has come to the server
	Era       string // of the client
	Method    string // of the message, or one of those above
	Kind      string // tool, prompt or resource; what another line is about
	Name      string // of the tool or prompt, or the URI of the resource
	Decision  string // allow, deny or limit
	Rule      int    // the number of the rule that decided, from 1
	Reason    string // why the request was refused, or why something has ended
	Outcome   string // as in log messages
	Took      time.Duration

	Address string // of the client, as that of a connection or as a trusted proxy has named it
	// Request is the id that the access log and spans have of the request, too. [Log.Write]
	// makes one for a message of a client that has none.
	Request string
	Trace   string   // the id of the trace
	Digest  string   // of what was accepted
	Changed []string // names of what has changed
	Times   int      // how many of the same the line is about; omitted if it is one
}

// Started returns the line of a process of a version that begins to serve.
func Started(version string) *Record {
	return &Record{Time: time.Now(), Method: MethodStart, Kind: "process", Name: version}
}

// Stopped returns the line of a process that begins to end.
func Stopped(version string) *Record {
	return &Record{Time: time.Now(), Method: MethodStop, Kind: "process", Name: version}
}

// Restarted returns the line of a server that begins anew, which a principal wanted.
func Restarted(server, principal string) *Record {
	return &Record{Time: time.Now(), Method: MethodRestart, Kind: "server", Server: server, Principal: principal, Decision: "allow"}
}

// TaskCancelled returns the line of a task of a server that a principal has had cancelled, which was
// made of a call of a tool by whose.
func TaskCancelled(server, tool, whose, principal string) *Record {
	return &Record{Time: time.Now(), Method: MethodCancelTask, Kind: "tool", Name: tool, Server: server, Principal: principal, Decision: "allow", Reason: "it was a task of " + whose}
}

// Pinned returns the line about a tool of a server, or for an empty name about all of them: what
// became of a definition with a digest.
func Pinned(server, tool, digest, what string, refused bool) *Record {
	r := &Record{Time: time.Now(), Method: MethodPin, Kind: "tool", Server: server, Name: tool, Digest: digest, Decision: "allow", Reason: what}
	if refused {
		r.Decision = "deny"
	}
	return r
}

// Login returns the line about the login of a principal at a server: that it was made, refused to
// somebody who is not the principal, or ended. by is who has tried; why says more.
func Login(what, server, principal, by, address, why string) *Record {
	r := &Record{Time: time.Now(), Method: MethodLogin, Kind: "login", Server: server, Principal: principal, Address: address, Decision: "allow", Reason: why}
	switch {
	case what == MethodLogout:
		r.Method = MethodLogout
	case what != MethodLogin:
		r.Decision, r.Outcome, r.Name = "deny", "refused", by
	}
	return r
}

// append appends the line to dst.
func (r *Record) append(dst []byte) []byte {
	dst = appendTime(append(dst, `{"time":`...), r.Time)
	dst = appendText(dst, `,"principal":`, r.Principal)
	dst = appendText(dst, `,"address":`, r.Address)
	dst = appendText(dst, `,"server":`, r.Server)
	dst = appendText(dst, `,"group":`, r.Group)
	dst = appendWord(dst, `,"era":"`, r.Era)
	dst = appendText(dst, `,"method":`, r.Method)
	dst = appendWord(dst, `,"kind":"`, r.Kind)
	dst = appendText(dst, `,"name":`, withoutQuery(r.Kind, r.Name))
	dst = appendWord(dst, `,"decision":"`, r.Decision)
	dst = appendText(dst, `,"reason":`, r.Reason)
	dst = appendWord(dst, `,"outcome":"`, r.Outcome)
	dst = appendText(dst, `,"session":`, r.Session)
	dst = appendText(dst, `,"client":`, r.Client)
	dst = appendWord(dst, `,"request":"`, r.Request)
	dst = appendText(dst, `,"trace":`, r.Trace)
	dst = appendText(dst, `,"digest":`, r.Digest)
	dst = appendNames(dst, r.Changed)
	if r.Rule > 0 {
		dst = strconv.AppendInt(append(dst, `,"rule":`...), int64(r.Rule), 10)
	}
	if r.Times > 1 {
		dst = strconv.AppendInt(append(dst, `,"times":`...), int64(r.Times), 10)
	}
	took := max(r.Took, 0).Microseconds()
	dst = strconv.AppendInt(append(dst, `,"ms":`...), took/1000, 10)
	return append(appendMillis(dst, int(took%1000)), "}\n"...)
}

// appendTime appends a time in UTC with milliseconds, as a JSON string.
func appendTime(dst []byte, t time.Time) []byte {
	dst = t.UTC().AppendFormat(append(dst, '"'), time.RFC3339) // which is faster than other layouts
	dst = appendMillis(dst[:len(dst)-len("Z")], t.Nanosecond()/1e6)
	return append(dst, `Z"`...)
}

// appendMillis appends the fraction of a thousand parts.
func appendMillis(dst []byte, n int) []byte {
	return append(dst, '.', byte('0'+n/100), byte('0'+n/10%10), byte('0'+n%10))
}

// appendWord is appendText for a text that is one of our own words or ids.
func appendWord(dst []byte, begin, word string) []byte {
	if word == "" {
		return dst
	}
	return append(append(append(dst, begin...), word...), '"')
}

// appendText appends a member, unless its text is empty. begin is what stands before the text.
func appendText(dst []byte, begin, text string) []byte {
	if text == "" {
		return dst
	}
	return wire.AppendString(append(dst, begin...), cut(text))
}

// appendNames appends the member changed, unless there are no names.
func appendNames(dst []byte, names []string) []byte {
	for i, name := range names {
		switch {
		case i == 0:
			dst = append(dst, `,"changed":[`...)
		case i == maxNames:
			return append(dst, `,"…"]`...)
		default:
			dst = append(dst, ',')
		}
		dst = wire.AppendString(dst, cut(name))
	}
	if len(names) > 0 {
		dst = append(dst, ']')
	}
	return dst
}

// withoutQuery returns the URI of a resource without its query, which may have arguments or
// a credential.
func withoutQuery(kind, name string) string {
	if kind != "resource" {
		return name
	}
	if i := strings.IndexAny(name, "?#"); i >= 0 {
		name = name[:i+1] + "…"
	}
	scheme, rest, _ := strings.Cut(name, "://")
	host, _, _ := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		return scheme + "://…" + rest[i:]
	}
	return name
}

// cut returns the part of a text that is within maxText.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	most := maxText
	for ; !utf8.RuneStart(text[most]); most-- {
	}
	return text[:most] + "…"
}
