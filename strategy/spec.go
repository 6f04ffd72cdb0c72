package strategy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/run"
)

// A Spec describes a strategy. The help, configuration, completion and documentation are made from
// it.
type Spec struct {
	Name      string
	Summary   string // one line
	Source    string // the publication that it implements
	Func      Func
	Defaults  string // its thresholds, with the settings that change them
	UsualCost string // its steps, mostly relative to static
}

// specs lists the strategies, the default first.
var specs = []Spec{
	autoSpec, staticSpec, advancedSpec, correctiveSpec, selfSpec, cragSpec, adaptiveSpec, fusionSpec, judgeSpec, reflectSpec, reactSpec,
	multihopSpec, graphSpec, agentSpec, managedSpec,
}

// Specs returns the strategies, the default first.
func Specs() []Spec { return slices.Clone(specs) }

// Names returns the names of the strategies, the default first.
func Names() []string {
	names := make([]string, len(specs))
	for i, s := range specs {
		names[i] = s.Name
	}
	return names
}

// Lookup returns the named strategy of this package or of added; the empty name is the default. An
// unknown name is assay.ErrInvalid.
func Lookup(name string, added ...Spec) (Spec, error) {
	for _, s := range slices.Concat(specs, added) {
		if s.Name == name || name == "" {
			return s, nil
		}
	}
	names := Names()
	for _, s := range added {
		names = append(names, s.Name)
	}
	return Spec{}, fmt.Errorf("unknown strategy %q, want one of %s: %w", name, strings.Join(names, ", "), assay.ErrInvalid)
}

// CheckSpecs checks strategies that are added to those of this package. The error is
// assay.ErrInvalid if one has no Name or Func, or a name that is in use.
func CheckSpecs(added []Spec) error {
	used := Names()
	for _, s := range added {
		switch {
		case s.Name == "" || s.Func == nil:
			return fmt.Errorf("the strategy %q needs a name and a function: %w", s.Name, assay.ErrInvalid)
		case slices.Contains(used, s.Name):
			return fmt.Errorf("there is already a strategy %q: %w", s.Name, assay.ErrInvalid)
		}
		used = append(used, s.Name)
	}
	return nil
}

// ask returns the strategy's function. The result of a strategy that was added is checked.
func (s Spec) ask() Func {
	if slices.Contains(Names(), s.Name) {
		return s.Func
	}
	return func(ctx context.Context, scope run.Scope, env Env) (Result, error) {
		r, err := s.Func(ctx, scope, env)
		if err != nil {
			return r, err
		}
		if fault := r.fault(); fault != "" {
			return Result{}, fmt.Errorf("the result of the strategy %s is not one of Env.Finish: %s: %w", s.Name, fault, assay.ErrInvalid)
		}
		return r, nil
	}
}

// fault reports in which way r was not verified, or was changed afterwards; empty: in none.
func (r *Result) fault() string {
	status, reason := decide(r.evidence, r.verdicts, cmp.Or(r.spent, r.Stop))
	switch {
	case r.Status != status || r.Reason != reason:
		return fmt.Sprintf("its status is %q (%s), want %q (%s)", r.Status, r.Reason, status, reason)
	case len(r.Claims) == 0 && r.Text != r.emptyText():
		return "it has a text without claims"
	case len(r.Claims) > 0 && (r.Cached != nil || r.AskBack != ""):
		return "it has claims, and is cached or asks back"
	}
	for i, c := range r.Claims {
		within := 0 <= c.Start && c.Start <= c.End && c.End <= len(r.Text)
		if !within || c.Verdict != assay.Supported {
			return fmt.Sprintf("claim %d is not a supported part of its text", i+1)
		}
	}
	for i, c := range r.Citations {
		if c.Claim < 0 || c.Claim >= len(r.Claims) || c.Number < 1 {
			return fmt.Sprintf("citation %d has no claim or no number", i+1)
		}
	}
	return ""
}
