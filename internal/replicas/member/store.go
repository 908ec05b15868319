package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// A Store is a broker that keeps what all replicas know. Its methods may be
// called at the same time, heed their contexts, and return an error if the
// broker can't be reached.
type Store interface {
	// Beat writes the record of a member. One of a higher count stays: what a replica has had
	// another one write may arrive late. That is no error.
	Beat(ctx context.Context, b Beat) error
	// Poll returns the claims under keys that exist, and then the records of all members. It may
	// answer by what the broker has told by itself, unless fresh is set.
	Poll(ctx context.Context, keys []string, fresh bool) (Snapshot, error)
	// Load asks the broker for one claim. The zero Entry says that there is none.
	Load(ctx context.Context, key string) (Entry, error)
	// Swap replaces a claim if it is old still; the zero Entry means that there is none. An
	// empty value deletes. It reports whether it was done.
	Swap(ctx context.Context, key string, old Entry, value string) (bool, error)
	// Claims calls f with each claim that is kept.
	Claims(ctx context.Context, f func(key string, e Entry)) error

	Put(ctx context.Context, key string, record []byte, ttl time.Duration) error
	Get(ctx context.Context, key string) ([]byte, error)
	Take(ctx context.Context, key string) ([]byte, error)
	replicas.Keeper // by what replicas.Key makes of keys

	// Changed has a value after the broker told that something changed: a hint to poll.
	Changed() <-chan struct{}
	Close(ctx context.Context) error
}

// A Beat is a heartbeat.
type Beat struct {
	Instance string
	Record   []byte
	Count    uint64        // of the record, which rises
	Lasts    time.Duration // for which the record is kept; or somewhat longer
	News     bool          // it is no mere heartbeat: others are told at once
}

// A Snapshot is what a store knows.
type Snapshot struct {
	Members map[string][]byte // records by instance
	// Age is how long ago all was told that Members has: what was written since may be missing.
	// It counts from when the store was asked.
	Age     time.Duration
	Claims  map[string]Entry
	Skipped Skipped
}

// Skipped says how many records were too large, or too many, so that a store has skipped them
// since it was asked before. A claim that is too large is none.
type Skipped struct {
	Records int
	Where   string // the engine, and the key of one of them
}

// Add counts more of them.
func (s *Skipped) Add(records int, where string) {
	if records > 0 {
		s.Records, s.Where = s.Records+records, where
	}
}

// An Entry is a claim as it is kept.
type Entry struct {
	Value    string
	Revision uint64 // of stores that compare revisions
}

// record is what a member writes. Fields that a later version adds are skipped.
type record struct {
	Addr     string           `json:"addr"`
	Version  string           `json:"version"`
	Revision int              `json:"revision,omitempty"`
	Draining bool             `json:"draining,omitempty"`
	Ready    bool             `json:"ready,omitempty"`
	Servers  replicas.Servers `json:"servers,omitempty"`
	TLS      bool             `json:"tls,omitempty"`
	Pace     int64            `json:"pace,omitempty"` // in milliseconds, if it is not the default
	Beat     uint64           `json:"beat"`           // rises
	Left     bool             `json:"left,omitempty"` // the last record of a replica that ended
	// Quiet is for how many milliseconds it takes nothing, since others count on that; see newcomer.
	Quiet int64 `json:"quiet,omitempty"`
}

func encode(r replicas.Replica, beat uint64, left bool, quiet time.Duration) ([]byte, error) {
	return json.Marshal(record{Addr: r.Addr, Version: r.Version, Revision: r.Revision, Draining: r.Draining, Ready: r.Ready, Servers: r.Servers, TLS: r.TLS, Pace: milliseconds(r.Pace), Beat: beat, Left: left, Quiet: quiet.Milliseconds()})
}

// Told returns the count of a record, and how long it is to be kept; zero and the least if it
// can't be read.
func Told(data []byte) (count uint64, lasts time.Duration) {
	r, rec, _ := decode("", data)
	return rec.Beat, r.Pace.Patience()
}

var errNoAddress = errors.New("it has no address")

func decode(instance string, data []byte) (replicas.Replica, record, error) {
	var rec record
	err := json.Unmarshal(data, &rec)
	if err == nil && rec.Addr == "" {
		err = errNoAddress
	}
	if err != nil {
		return replicas.Replica{}, record{}, fmt.Errorf("reading the record of replica %q: %v", instance, err)
	}
	rec.Quiet = min(max(rec.Quiet, 0), replicas.Pace(replicas.SlowestHeartbeat).Patience().Milliseconds())
	return replicas.Replica{Instance: instance, Addr: replicas.Address(rec.Addr), Version: rec.Version, Revision: rec.Revision, Draining: rec.Draining, Ready: rec.Ready, Servers: rec.Servers.Bounded(), TLS: rec.TLS, Pace: paceOf(rec.Pace)}, rec, nil
}

// milliseconds is a pace as it is written.
func milliseconds(p replicas.Pace) int64 { return time.Duration(p.Bounded()).Milliseconds() }

func paceOf(milliseconds int64) replicas.Pace {
	bounded := min(max(milliseconds, 0), replicas.SlowestHeartbeat.Milliseconds())
	return replicas.Pace(time.Duration(bounded) * time.Millisecond).Bounded()
}

// claim is an Entry that was read.
type claim struct {
	holder string // instance; "" if nobody holds it
	epoch  uint64
	anew   uint64        // how often the same holder has claimed it anew
	pace   replicas.Pace // of the holder, for who does not know it
}

func (c claim) value() string {
	value := c.holder + " " + strconv.FormatUint(c.epoch, 10)
	if c.anew > 0 || c.pace > 0 {
		value += " " + strconv.FormatUint(c.anew, 10)
	}
	if c.pace > 0 {
		value += " " + strconv.FormatInt(milliseconds(c.pace), 10)
	}
	return value
}

// before reports whether c was written before d.
func (c claim) before(d claim) bool {
	return c.epoch < d.epoch || c.epoch == d.epoch && c.holder == d.holder && c.anew < d.anew
}

// parse reads the value of a claim. Fields that a later version adds are
// skipped, and what it can't read is held by nobody.
func parse(value string) claim {
	fields := strings.Fields(value)
	if len(fields) < 2 {
		return claim{}
	}
	epoch, err := strconv.ParseUint(fields[1], 10, 63) // there is always a next one
	if err != nil {
		return claim{}
	}
	c := claim{holder: fields[0], epoch: epoch}
	if len(fields) > 2 {
		c.anew, _ = strconv.ParseUint(fields[2], 10, 63) // 0 if it can't be read
	}
	if len(fields) > 3 {
		pace, _ := strconv.ParseInt(fields[3], 10, 64)
		c.pace = paceOf(pace)
	}
	return c
}
