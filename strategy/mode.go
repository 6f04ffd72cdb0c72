package strategy

import (
	"fmt"
	"strings"
	"time"

	"github.com/assay-rag/assay"
)

// A Mode says how much work a question is worth: it scales what a run may spend where
// nothing else is said of it.
type Mode string

// The modes.
const (
	Normal   Mode = ""
	Quick    Mode = "quick"    // half of the searches, rounds, hops, hits of a search, and time
	Thorough Mode = "thorough" // twice as much of them
)

// Modes lists the modes that have a name.
func Modes() []Mode { return []Mode{Quick, Thorough} }

// Check says what is wrong with m, as assay.ErrInvalid.
func (m Mode) Check() error {
	switch m {
	case Normal, Quick, Thorough:
		return nil
	}
	names := make([]string, len(Modes()))
	for i, mode := range Modes() {
		names[i] = string(mode)
	}
	return fmt.Errorf("unknown mode %q, want one of %s: %w", string(m), strings.Join(names, ", "), assay.ErrInvalid)
}

// count is n as m scales it, rounded up, so that of one there is always one.
func (m Mode) count(n int) int {
	switch m {
	case Quick:
		return (n + 1) / 2
	case Thorough:
		return 2 * n
	}
	return n
}

// Wall is a wall time as m scales it.
func (m Mode) Wall(d time.Duration) time.Duration {
	switch m {
	case Quick:
		return d / 2
	case Thorough:
		return 2 * d
	}
	return d
}

// Limits are l as m scales them: the searches of a sub-question and the hits of a
// search, with those that are not set at their defaults. How many hits become evidence,
// what suffices and what a generator reads stay as they are; so does the wall time,
// which is the run's: see Wall. Those of Normal are l.
func (m Mode) Limits(l Limits) Limits {
	if m == Normal {
		return l
	}
	d := l.withDefaults()
	l.Iterations, l.Seconds, l.Candidates = m.count(d.Iterations), m.count(d.Seconds), m.count(d.Candidates)
	return l
}

// Settings are s as m scales them: rounds, steps, hops, rewritings and hits, with those
// that are not set at their defaults. Thresholds stay as they are. Those of Normal are s.
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
