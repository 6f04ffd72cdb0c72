package run

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay"
)

// A Scope is a place in a run. Steps are taken in a scope and are named by its path. It is a small
// value, passed explicitly. The zero Scope cannot be used.
type Scope struct {
	run    *Run
	branch *branch
	path   string        // "sub[1]/round[0]"; empty for the outermost
	until  time.Duration // active time at which its steps end; 0: the run's wall time

	closing bool // see Closing
}

// Path returns the path of s: "sub[1]/round[0]", empty for the outermost scope.
func (s Scope) Path() string { return s.path }

// Sub returns the scope name[i] inside s. It has no budget of its own. Sub panics if name is empty
// or contains a slash, bracket, white space or control character, or if i is negative. Names come
// from the strategy, never from a model or a user.
func (s Scope) Sub(name string, i int) Scope {
	checkName(name)
	if i < 0 {
		panic(fmt.Sprintf("run: scope %s[%d]", name, i))
	}
	s.path = s.join(name + "[" + strconv.Itoa(i) + "]")
	return s
}

// Until returns a scope with the same path whose steps end when the run has been active for d, if
// that is before the run's own wall time. A strategy uses it to reserve time for its final steps.
func (s Scope) Until(d time.Duration) Scope {
	if s.until == 0 || d < s.until {
		s.until = max(d, 1)
	}
	return s
}

// Spent returns the cost so far of the steps of s's branch, including joined branches. For the
// outermost scope that is the whole run. It is the same in every replay. Like a step, it must not
// be called during another step of the branch.
func (s Scope) Spent() assay.Usage { return s.branch.spent }

// Elapsed returns the run's active time as a recorded step. Readings are numbered separately in
// each scope. No deadline refuses them.
func (s Scope) Elapsed(ctx context.Context) (time.Duration, error) {
	if s.branch.clocks == nil {
		s.branch.clocks = map[string]int{}
	}
	i := s.branch.clocks[s.path]
	s.branch.clocks[s.path]++
	path := s.join("clock[" + strconv.Itoa(i) + "]")
	return do(ctx, s, path, Step{Kind: assay.StepClock}, struct{}{},
		func(context.Context, struct{}) (time.Duration, assay.Usage, error) {
			return s.run.activeAt(s.run.now()), assay.Usage{}, nil
		})
}

func (s Scope) join(name string) string {
	if s.path == "" {
		return name
	}
	return s.path + "/" + name
}

// deadline returns the active time at which steps of this kind end; 0 means never. Clock readings
// take no time, and human decisions have no deadline.
func (s Scope) deadline(kind assay.StepKind) time.Duration {
	switch {
	case kind == assay.StepClock || kind == assay.StepHuman:
		return 0
	case s.run.wall == 0 || s.until > 0 && s.until < s.run.wall:
		return s.until
	}
	return s.run.wall
}

func checkName(name string) {
	bad := func(c rune) bool { return c <= ' ' || c == '/' || c == '[' || c == ']' || c == 0x7f }
	if name == "" || strings.ContainsFunc(name, bad) {
		panic(fmt.Sprintf("run: %q is no name for a step or scope", name))
	}
}
