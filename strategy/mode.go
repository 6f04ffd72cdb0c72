package strategy

import (
	"fmt"
	"strings"
	"time"

	"github.com/assay-rag/assay"
)

// A Mode is the effort spent on a question. It scales the default limits of a run.
type Mode string

// The modes.
const (
	Normal   Mode = ""
	Quick    Mode = "quick"    // half the searches, rounds, hops, hits per search, and time
	Thorough Mode = "thorough" // twice of these
)

// Modes returns the modes with a name.
func Modes() []Mode { return []Mode{Quick, Thorough} }

// Check returns assay.ErrInvalid if m is unknown.
func (m Mode) Check() error {
	switch m {
	case Normal, Quick, Thorough:
		return nil
	}
	names := make([]string, len(Modes()))
	for i, mode := range Modes() {
		names[i] = string(mode)
	}
	return fmt.Errorf("unknown mode %.100q, want one of %s: %w", string(m), strings.Join(names, ", "), assay.ErrInvalid)
}

// count returns n scaled by m and rounded up, so that 1 stays at least 1.
func (m Mode) count(n int) int {
	switch m {
	case Quick:
		return (n + 1) / 2
	case Thorough:
		return 2 * n
	}
	return n
}

// Wall returns a wall time scaled by m.
func (m Mode) Wall(d time.Duration) time.Duration {
	switch m {
	case Quick:
		return d / 2
	case Thorough:
		return 2 * d
	}
	return d
}

// Limits returns l scaled by m: the searches and seconds of a sub-question and the hits of a
// search, starting from the defaults where they are unset. The number of hits that become evidence,
// the thresholds, the generator's context and the wall time (see Wall) do not change. Normal
// returns l unchanged.
func (m Mode) Limits(l Limits) Limits {
	if m == Normal {
		return l
	}
	d := l.withDefaults()
	l.Iterations, l.Seconds, l.Candidates = m.count(d.Iterations), m.count(d.Seconds), m.count(d.Candidates)
	return l
}

// Settings returns s scaled by m: rounds, steps, hops, rewritings and hits, starting from the
// defaults where they are unset. Thresholds do not change. Normal returns s unchanged.
func (m Mode) Settings(s Settings) Settings {
	if m == Normal {
		return s
	}
	s = s.withDefaults()
	for _, n := range []*int{
		&s.CRAG.Web, &s.Self.Iterations, &s.Adaptive.Simple, &s.Adaptive.Moderate, &s.Adaptive.Rounds, &s.Adaptive.Complex,
		&s.Fusion.Queries, &s.Judge.Rounds, &s.Reflect.Rounds, &s.React.Steps, &s.Multihop.Hops,
	} {
		*n = m.count(*n)
	}
	return s
}
