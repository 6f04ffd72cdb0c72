package strategy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay"
)

// A Range is the allowed range [0, Most] of a number that a caller sets. 0 means the default.
type Range struct {
	Name  string // "limits.keep"
	Value float64
	Most  float64
}

// Check returns assay.ErrInvalid for a number outside its range, such as NaN.
func (r Range) Check() error {
	if r.Value >= 0 && r.Value <= r.Most {
		return nil
	}
	if r.Value < 0 {
		return fmt.Errorf("%s is negative (%s), want 0 to %s: %w", r.Name, r.text(r.Value), r.MostText(), assay.ErrInvalid)
	}
	return fmt.Errorf("%s is %s, want 0 to %s: %w", r.Name, r.text(r.Value), r.text(r.Most), assay.ErrInvalid)
}

// MostText returns Most in the form of an error.
func (r Range) MostText() string { return r.text(r.Most) }

// text prints a value; times are in nanoseconds.
func (r Range) text(x float64) string {
	if strings.HasSuffix(r.Name, "_ns") && math.Abs(x) < math.MaxInt64 {
		return time.Duration(x).String()
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// MaxWall is the longest wall time of a run.
const MaxWall = 7 * 24 * time.Hour

const (
	mostHits   = 1000
	mostCount  = 100       // of searches, rounds and steps
	mostTokens = 1_000_000 // of evidence
)

// Ranges returns the numbers of l with their ranges, except those of BM25.
func (l Limits) Ranges() []Range {
	return []Range{
		{"limits.iterations", float64(l.Iterations), mostCount},
		{"limits.seconds", float64(l.Seconds), MaxWall.Seconds()},
		{"limits.candidates", float64(l.Candidates), mostHits},
		{"limits.keep", float64(l.Keep), mostHits},
		{"limits.context_tokens", float64(l.ContextTokens), mostTokens},
		{"limits.parts", float64(l.Parts), mostCount},
		{"limits.floor", l.Floor, 1},
		{"limits.held", l.MinAnswerability, 1},
		{"limits.wall_ns", float64(l.Wall), float64(MaxWall)},
		{"limits.passages", float64(l.Passages), mostHits},
		{"limits.alone", l.Alone, 1},
		{"limits.vector_weight", l.VectorWeight, 1},
	}
}

// Check returns assay.ErrInvalid if a field of l is out of range.
func (l Limits) Check() error {
	if err := checkRanges(l.Ranges()); err != nil {
		return err
	}
	return l.BM25.Check()
}

// Ranges returns the numbers of s with their ranges.
func (s Settings) Ranges() []Range {
	return []Range{
		{"settings.crag.correct", s.CRAG.Correct, 1},
		{"settings.crag.incorrect", s.CRAG.Incorrect, 1},
		{"settings.crag.relevant", float64(s.CRAG.Relevant), mostCount},
		{"settings.crag.web", float64(s.CRAG.Web), mostCount},
		{"settings.crag.web_score", s.CRAG.WebScore, 1},
		{"settings.self.iterations", float64(s.Self.Iterations), mostCount},
		{"settings.adaptive.simple", float64(s.Adaptive.Simple), mostHits},
		{"settings.adaptive.moderate", float64(s.Adaptive.Moderate), mostHits},
		{"settings.adaptive.rounds", float64(s.Adaptive.Rounds), mostCount},
		{"settings.adaptive.complex", float64(s.Adaptive.Complex), mostHits},
		{"settings.fusion.queries", float64(s.Fusion.Queries), mostCount},
		{"settings.judge.rounds", float64(s.Judge.Rounds), mostCount},
		{"settings.reflect.rounds", float64(s.Reflect.Rounds), mostCount},
		{"settings.reflect.coverage", s.Reflect.Coverage, 1},
		{"settings.react.steps", float64(s.React.Steps), mostCount},
		{"settings.react.compress", float64(s.React.Compress), mostCount},
		{"settings.react.invalid", float64(s.React.Invalid), mostCount},
		{"settings.multihop.hops", float64(s.Multihop.Hops), mostCount},
		{"settings.verify.grounding", s.Verify.Grounding, 1},
		{"settings.verify.relevance", s.Verify.Relevance, 1},
	}
}

// Check returns assay.ErrInvalid if a field of s is out of range.
func (s Settings) Check() error {
	if name := s.Auto.Escalate; name != "" && !slices.Contains(Escalations(), name) {
		return fmt.Errorf("settings.auto.escalate is %.100q, want one of %s: %w", name, strings.Join(Escalations(), ", "), assay.ErrInvalid)
	}
	return checkRanges(s.Ranges())
}

func checkRanges(ranges []Range) error {
	for _, r := range ranges {
		if err := r.Check(); err != nil {
			return err
		}
	}
	return nil
}
