package metrics

import (
	"cmp"
	"log/slog"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/status"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// The windows of rates: how many slots each has, and how long these are.
const (
	minuteSlots, minuteSlot = 30, 2 * time.Second
	hourSlots, hourSlot     = 30, 2 * time.Minute
	daySlots, daySlot       = 24, time.Hour
)

// forgotten is after how long without a request a client leaves its place to another one.
const forgotten = 24 * time.Hour

// rates count the requests of the last minute, hour and day, always: they keep times, and no
// messages. They have 256 clients at most, because these can take any name (CWE-770).
type rates struct {
	began   time.Time
	clients table[ratedKey, *rated]
	log     *slog.Logger
	warn    transport.WarnLimiter
	mu      sync.Mutex   // is held while clients join
	until   atomic.Int64 // since began: until then there is no place for another client
}

// A ratedKey is a client of a server; others stands for all without a place of their own.
type ratedKey struct {
	server, client string
	others         bool
}

// rate counts a request: for its client, since a server's are those of its clients. last has the
// client of the server's last request.
func (m *Metrics) rate(s *mcp.Served, last *lastClient) {
	r := m.requests.rates
	now := r.since(s.Ended)
	failed := s.Outcome != "ok" && s.Outcome != "cancelled" && s.Outcome != "input_required"
	r.client(m, s, now, last).add(now, s.Took, failed)
}

// since returns how long after began a request has ended: now if the time is zero.
func (r *rates) since(ended time.Time) time.Duration {
	if ended.IsZero() {
		return time.Since(r.began)
	}
	return max(ended.Sub(r.began), 0)
}

func newRatedClient(ratedKey) *rated { return new(rated) }

// A lastClient is the client of a server's last request, at hand.
type lastClient = atomic.Pointer[looked[ratedKey, *rated]]

// client returns what counts a client's requests.
func (r *rates) client(m *Metrics, s *mcp.Served, now time.Duration, last *lastClient) *rated {
	k := ratedKey{server: s.Server, client: s.Client}
	if all := r.clients.all.Load(); all != nil {
		was := last.Load()
		if was != nil && was.in == all && was.k.client == k.client && !was.k.others {
			return was.v
		}
		if one := (*all)[k]; one != nil {
			if was == nil || was.in != all || rand.Uint32()%16 == 0 {
				last.Store(&looked[ratedKey, *rated]{all, k, one})
			}
			return one
		}
	}
	if int64(now) >= r.until.Load() && r.takePlace(k, now) {
		return r.clients.get(k, newRatedClient)
	}
	m.Limit(s.Server, "rated_clients")
	r.warn.Warn(r.log, "client is one of others in the rates of the admin page: as many clients as have a line there have sent requests within a day", "upstream", s.Server, "limit", status.MaxRatedClients)
	return r.clients.get(ratedKey{server: s.Server, others: true}, newRatedClient)
}

// takePlace reports whether there is a place for another client. Whoever has sent nothing for a day
// leaves its place.
func (r *rates) takePlace(k ratedKey, now time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.places() < status.MaxRatedClients {
		r.clients.get(k, newRatedClient)
		return true
	}
	r.clients.drop(func(k ratedKey) bool {
		return !k.others && now-time.Duration((*r.clients.all.Load())[k].last.Load()) > forgotten
	})
	if r.places() == status.MaxRatedClients {
		r.until.Store(int64(now + time.Minute))
		return false
	}
	r.clients.get(k, newRatedClient)
	return true
}

// places returns how many clients have one.
func (r *rates) places() (n int) {
	if all := r.clients.all.Load(); all != nil {
		for k := range *all {
			if !k.others {
				n++
			}
		}
	}
	return n
}

// Rates returns those of all servers, and if server is not empty those of its clients.
func (m *Metrics) Rates(server string) *status.Rates {
	r := m.requests.rates
	now := time.Since(r.began)
	out := &status.Rates{Servers: []status.Rate{}, Clients: []status.Rate{}}
	servers := make(map[string]*rated)
	if all := r.clients.all.Load(); all != nil {
		for k, one := range *all {
			if servers[k.server] == nil {
				servers[k.server] = new(rated)
			}
			one.addTo(servers[k.server])
			if k.server == server {
				out.Clients = append(out.Clients, one.rate(status.Rate{Server: server, Client: k.client, Others: k.others}, now))
			}
		}
	}
	for name, sum := range servers {
		out.Servers = append(out.Servers, sum.rate(status.Rate{Server: name}, now))
	}
	slices.SortFunc(out.Servers, func(a, b status.Rate) int { return strings.Compare(a.Server, b.Server) })
	slices.SortFunc(out.Clients, func(a, b status.Rate) int {
		return cmp.Or(cmp.Compare(b.Day.Calls, a.Day.Calls), strings.Compare(a.Client, b.Client))
	})
	return out
}

// A rated counts the requests of a client of a server, or is the sum of a server's.
type rated struct {
	last atomic.Int64 // when a request was counted, since rates.began

	// mu guards the fields below.
	mu     sync.Mutex
	minute [minuteSlots]slot
	hour   [hourSlots]slot
	day    [daySlots]slot
	// current are the slots of the time from from, since rates.began, to the end of a slot of a minute:
	// those of an hour and a day end with one.
	current [3]*slot
	from    time.Duration
}

// A slot has the requests of a part of a window. Its place is at modulo the number of slots.
type slot struct {
	at            int64 // counts slots since rates.began, from 1
	calls, errors uint32
	took          times
}

func (c *rated) add(now, took time.Duration, failed bool) {
	c.last.Store(int64(now))
	at := timeIndex(took)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current[0] == nil || now < c.from || now-c.from >= minuteSlot {
		c.from = now - now%minuteSlot
		c.current = [...]*slot{slotOf(c.minute[:], now/minuteSlot), slotOf(c.hour[:], now/hourSlot), slotOf(c.day[:], now/daySlot)}
	}
	for _, s := range c.current {
		s.calls++
		s.took[at]++
		if failed {
			s.errors++
		}
	}
}

// slotOf returns the slot of a time, which forgets an earlier round.
func slotOf(slots []slot, time time.Duration) *slot {
	s := &slots[int(time)%len(slots)]
	if s.at != int64(time)+1 {
		*s = slot{at: int64(time) + 1}
	}
	return s
}

// addTo adds what was counted to a sum, which nobody else has.
func (c *rated) addTo(sum *rated) {
	c.mu.Lock()
	defer c.mu.Unlock()
	join(sum.minute[:], c.minute[:])
	join(sum.hour[:], c.hour[:])
	join(sum.day[:], c.day[:])
}

// join adds slots to those of a sum. Of two rounds the later one stays.
func join(sum, of []slot) {
	for i := range of {
		s, more := &sum[i], &of[i]
		switch {
		case more.at < s.at || more.at == 0:
		case more.at > s.at:
			*s = *more
		default:
			s.calls, s.errors = s.calls+more.calls, s.errors+more.errors
			for t, n := range more.took {
				s.took[t] += n
			}
		}
	}
}

func (c *rated) rate(r status.Rate, now time.Duration) status.Rate {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Minute, r.Hour, r.Day = window(c.minute[:], minuteSlot, now), window(c.hour[:], hourSlot, now), window(c.day[:], daySlot, now)
	return r
}

// window returns the slots up to now.
func window(slots []slot, each, now time.Duration) status.Window {
	w := status.Window{Seconds: each.Seconds(), Slots: make([]status.Slot, len(slots))}
	var all times
	last := int64(now/each) + 1
	for i := range w.Slots {
		at := last - int64(len(slots)-1-i)
		if at < 1 {
			continue
		}
		s := &slots[int(at-1)%len(slots)]
		if s.at != at {
			continue
		}
		w.Calls, w.Errors = w.Calls+uint64(s.calls), w.Errors+uint64(s.errors)
		for t, n := range s.took {
			all[t] += n
		}
		w.Slots[i] = status.Slot{float64(s.calls), float64(s.errors), s.took.quantile(.5), s.took.quantile(.99)}
	}
	w.Median, w.Late = all.quantile(.5), all.quantile(.99)
	return w
}

// times is a histogram of fixed bounds: each is a third or a half above the one before.
type times [2*timeOctaves + 2]uint32

const (
	timeUnit    = 1 << 17 // the first bound: 131 µs
	timeOctaves = 22      // up to 9 minutes
)

// timeIndex returns the place of a time.
func timeIndex(d time.Duration) int {
	units := uint64(max(d, 0)) / timeUnit
	n := bits.Len64(units)
	switch {
	case n < 1:
		return 0
	case n > timeOctaves:
		return len(times{}) - 1
	case n == 1:
		return 2 + int(uint64(d)>>16&1)
	}
	return 2*n + int(units>>(n-2)&1)
}

// timeBound returns the least time of a place, in milliseconds.
func timeBound(i int) float64 {
	if i < 2 {
		return 0
	}
	return float64(uint64(timeUnit)<<(i/2-1)) * (1 + .5*float64(i%2)) / 1e6
}

// quantile returns the time, in milliseconds, that a part of all have taken at most: about, since
// those of one place are taken to be spread evenly.
func (t *times) quantile(q float64) float64 {
	var all uint64
	for _, n := range t {
		all += uint64(n)
	}
	if all == 0 {
		return 0
	}
	rest := q * float64(all)
	for i, n := range t {
		if rest <= float64(n) && n > 0 {
			from, to := timeBound(i), timeBound(max(i+1, 2))
			return from + (to-from)*rest/float64(n)
		}
		rest -= float64(n)
	}
	return timeBound(len(t) - 1)
}
