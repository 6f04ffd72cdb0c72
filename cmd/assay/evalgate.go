package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/assay-rag/assay/cmd/assay/internal/config"
	"github.com/assay-rag/assay/eval/metric"
)

// knownMeasures rejects a gate with an unknown measure before any paid call. Measures of the user
// may be defined in --measures or the baseline.
func (v *evaluating) knownMeasures() error {
	var known []string
	for _, m := range metric.All() {
		known = append(known, m.Name)
	}
	for _, p := range v.measures {
		known = append(known, p.Name)
	}
	if v.baseline != nil {
		for _, s := range v.baseline.Systems {
			known = slices.AppendSeq(known, maps.Keys(s.Figures))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.gate.Metrics)) {
		if slices.Contains(known, name) {
			continue
		}
		hint := "docs/measures.md lists them"
		if near := config.Similar(name, known); len(near) > 0 {
			hint = "did you mean " + strings.Join(near, ", ") + "?"
		}
		return hinted{usagef("the gate %s: unknown measure %s", v.flags.gate, name), hint}
	}
	return nil
}
