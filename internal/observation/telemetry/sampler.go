package telemetry

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
)

const (
	samplerVar    = "OTEL_TRACES_SAMPLER"
	samplerArgVar = "OTEL_TRACES_SAMPLER_ARG"
)

// A sampler decides which traces are recorded.
type sampler struct {
	parentBased bool   // the parent decides, if there is one
	bound       uint64 // traces whose number is below are recorded; of 1<<63
}

// newSampler returns the sampler that the environment names.
//
// Spec: OpenTelemetry, environment variables, OTEL_TRACES_SAMPLER.
func newSampler() (s sampler, err error) {
	name := cmp.Or(os.Getenv(samplerVar), "parentbased_always_on")
	root, isParent := strings.CutPrefix(name, "parentbased_")
	s.parentBased = isParent
	switch root {
	case "always_on":
		s.bound = 1 << 63
	case "always_off":
	case "traceidratio":
		ratio, err := strconv.ParseFloat(cmp.Or(os.Getenv(samplerArgVar), "1"), 64)
		if err != nil || !(ratio >= 0 && ratio <= 1) {
			return s, fmt.Errorf("%s is %q; want a ratio from 0 to 1", samplerArgVar, os.Getenv(samplerArgVar))
		}
		s.bound = uint64(ratio * (1 << 63))
	default:
		return s, fmt.Errorf("%s is %q; mcpbridge has always_on, always_off and traceidratio, each also as parentbased_…", samplerVar, name)
	}
	return s, nil
}

// samples decides on a trace. parent is the remote one, if it is valid.
func (s sampler) samples(trace [16]byte, parent *spanContext) bool {
	if s.parentBased && parent.isValid() {
		return parent.sampled
	}
	return binary.BigEndian.Uint64(trace[8:])>>1 < s.bound
}
