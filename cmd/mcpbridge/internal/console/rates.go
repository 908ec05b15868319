package console

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// requestsTotal counts the requests of clients, by server.
const requestsTotal = "mcpbridge_requests_total"

// A sample is how many requests each server has had, at one moment.
type sample struct {
	at time.Time
	of map[string]float64
}

// Rates are requests per second by server. Nil are unknown ones.
type Rates map[string]float64

// sample reads the counters.
func (a *Admin) sample(ctx context.Context) (s *sample, err error) {
	err = a.ask(ctx, http.MethodGet, "/metrics", func(r io.Reader) (err error) {
		s, err = readSample(r)
		return err
	})
	return s, err
}

func readSample(r io.Reader) (*sample, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(r)
	if err != nil {
		return nil, err
	}
	s := &sample{time.Now(), make(map[string]float64)}
	for _, m := range families[requestsTotal].GetMetric() {
		for _, label := range m.GetLabel() {
			if label.GetName() == "server" {
				s.of[label.GetValue()] += m.GetCounter().GetValue()
			}
		}
	}
	return s, nil
}

// since returns the rates since an earlier sample; nil if one of the two is missing, or if
// the counters began anew in between.
func (s *sample) since(before *sample) Rates {
	if s == nil || before == nil || !s.at.After(before.at) {
		return nil
	}
	seconds := s.at.Sub(before.at).Seconds()
	out := make(Rates, len(s.of))
	for server, n := range s.of {
		if n < before.of[server] {
			return nil
		}
		out[server] = (n - before.of[server]) / seconds
	}
	return out
}

// text returns the rate of a server for people.
func (r Rates) text(server string) string {
	if r == nil {
		return ""
	}
	return rateText(r[server])
}

// sum returns the rate of all servers for people.
func (r Rates) sum() string {
	all := 0.0
	for _, n := range r {
		all += n
	}
	return rateText(all)
}

func rateText(n float64) string {
	if n >= 100 {
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	return strconv.FormatFloat(n, 'f', 1, 64)
}
