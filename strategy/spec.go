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

// Lookup returns the named strategy; the empty name is the default. An unknown name is
// assay.ErrInvalid.
func Lookup(name string) (Spec, error) {
	for _, s := range specs {
		if s.Name == name || name == "" {
			return s, nil
		}
	}
	return Spec{}, fmt.Errorf("unknown strategy %q, want one of %s: %w", name, strings.Join(Names(), ", "), assay.ErrInvalid)
}
