package status

import "time"

// Bounds of the lists of a Snapshot.
const (
	MaxClients   = 200
	MaxTopics    = 60
	MaxFollowers = 60
	MaxEdges     = 400
	MaxQuestions = 100
	MaxQuirks    = 200
	MaxProcesses = 16 // of one server
)

// A Snapshot says what a gateway is doing at one moment.
type Snapshot struct {
	Time     time.Time `json:"time,omitzero"`
	Draining bool      `json:"draining"`
	Counts   Counts    `json:"counts"`
	Servers  []Server  `json:"servers"`
	Clients  Clients   `json:"clients"`
	Follows  Follows   `json:"follows"`
	// Questions are input requests that wait for an answer of their client.
	Questions Questions `json:"questions"`
	Quirks    Quirks    `json:"quirks"`
	Replicas  *Replicas `json:"replicas,omitempty"` // nil for one
}

// Counts are what a gateway holds at the moment.
type Counts struct {
	Requests  int `json:"requests"`  // over HTTP, in flight
	Streams   int `json:"streams"`   // listen streams
	Sessions  int `json:"sessions"`  // of legacy clients over HTTP
	Sockets   int `json:"sockets"`   // WebSockets of clients
	Topics    int `json:"topics"`    // resources and lists that somebody follows
	Pairs     int `json:"pairs"`     // of a topic and who follows it
	Questions int `json:"questions"` // that wait for an answer
}

// A Server is one server of the gateway.
type Server struct {
	Name  string `json:"name"`
	State string `json:"state"` // starting, ready, down or idle
	Error string `json:"error,omitempty"`
	// Members are the servers of a group, in order; nil for a server.
	Members []string `json:"members,omitempty"`
	Upstream
	Topics    int `json:"topics"`    // that somebody follows
	Followers int `json:"followers"` // of all of them
	Questions int `json:"questions"` // that wait for an answer
}

// An Upstream is how a server is reached, and how that went.
type Upstream struct {
	Transport string    `json:"transport,omitempty"` // command, http, sse, websocket or memory
	Era       string    `json:"era"`                 // legacy, modern, or unknown before that is known
	EraReason string    `json:"era_reason,omitempty"`
	EraSince  time.Time `json:"era_since,omitzero"`
	Revision  string    `json:"revision,omitempty"` // that is spoken with the server; empty before that is known
	// Since is when the state became what it is.
	Since time.Time `json:"since,omitzero"`
	// Sessions are those that are open with the server.
	Sessions int `json:"sessions"`
	// Processes are those of a command, of which Left more are not listed.
	Processes     []Process `json:"processes,omitempty"`
	ProcessesLeft int       `json:"processes_left,omitempty"`
	// LastError is the last one of an attempt to reach the server, which may be over.
	LastError     string    `json:"last_error,omitempty"`
	LastErrorTime time.Time `json:"last_error_time,omitzero"`
	// Tasks counts the tasks that are held for clients of the other era, which Holding has, and are
	// not over.
	Tasks   int       `json:"tasks,omitempty"`
	Holding TaskTable `json:"-"`
}

// A Process is one of a server's command.
type Process struct {
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	// Memory is what the process and its children use, in bytes; zero if the system does
	// not tell.
	Memory int64 `json:"memory,omitempty"`
	// Children are processes that the process has started, and theirs.
	Children int `json:"children,omitempty"`
}

// A Teller tells of one server: the back of either era.
type Teller interface {
	// Tell fills in what the Teller knows. It does not block.
	Tell(*Upstream)
}

// Questions are the input requests that wait.
type Questions struct {
	List []Question `json:"list"`
	Left int        `json:"left,omitempty"` // not listed
}

// A Question is what a server asks the client of one request.
type Question struct {
	Server    string    `json:"server"`
	Method    string    `json:"method"` // elicitation/create and the like
	Text      string    `json:"text,omitempty"`
	During    string    `json:"during"`         // the method of the client's request
	Name      string    `json:"name,omitempty"` // its tool, prompt or resource
	Client    string    `json:"client,omitempty"`
	Era       string    `json:"era"` // the client's
	Principal string    `json:"principal,omitempty"`
	Session   string    `json:"session,omitempty"`
	Since     time.Time `json:"since"`
	Until     time.Time `json:"until,omitzero"`
}

// Add adds a question, or counts it if there are too many.
func (q *Questions) Add(one Question) {
	if len(q.List) < MaxQuestions {
		q.List = append(q.List, one)
		return
	}
	q.Left++
}
