package strategy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
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
