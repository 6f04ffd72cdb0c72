package run

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay"
)

// A Scope is a place in a run. Steps are taken in a scope and are named by its
// path. It is a small value, handed down explicitly; the zero Scope is no place.
type Scope struct {
	run    *Run
	branch *branch
	path   string        // "sub[1]/round[0]"; empty for the outermost
	until  time.Duration // active time at which its steps end; 0: when the run's do
}

// Path returns where s is: "sub[1]/round[0]", empty for the outermost scope.
func (s Scope) Path() string { return s.path }

// Sub returns the scope name[i] inside s. It has no budget of its own. A name is
// not empty and holds no slash, bracket, white space or control character, and i
// is at least 0; else Sub panics. Names come from the strategy, never from a
// model or a user.
func (s Scope) Sub(name string, i int) Scope {
	checkName(name)
	if i < 0 {
		panic(fmt.Sprintf("run: scope %s[%d]", name, i))
	}
	s.path = s.join(name + "[" + strconv.Itoa(i) + "]")
	return s
}

// Until returns a scope in the same place whose steps end when the run has been
// active for d, if that is before the run's own wall time. A strategy uses it to
// keep time for its finish.
func (s Scope) Until(d time.Duration) Scope {
	if s.until == 0 || d < s.until {
		s.until = max(d, 1)
	}
	return s
}

// Spent returns what the steps of s's branch have cost so far, joined branches
// included; for the outermost scope that is the whole run. It is the same in
// every replay. Like a step, it must not be called while another step of the
// branch is taken.
func (s Scope) Spent() assay.Usage { return s.branch.spent }

// Elapsed reads the clock: how long the run has been active, as a recorded step.
// Readings in one scope are numbered by themselves. No deadline refuses them.
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

// deadline returns the active time at which steps of this kind end; 0: never. A
// clock reading takes no time, and a person takes theirs.
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
