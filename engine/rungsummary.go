package engine

import (
	"fmt"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/strategy"
)

// rungSummary describes a rung of the escalation ladder: its search, the hits, and the reason for
// taking it.
func rungSummary(rec assay.Record) string {
	if names := decode[[]string](rec.Output); names != nil {
		return counted(len(*names), "collection") + ": " + strings.Join(*names, ", ")
	}
	c, f := decode[strategy.RungInput](rec.Input), decode[strategy.RungOutput](rec.Output)
	if c == nil || f == nil {
		return string(rec.Kind)
	}
	if c.Rung == strategy.RungGiveUp {
		s := string(c.Rung) + ": " + c.Why
		for _, r := range c.Skipped {
			s += fmt.Sprintf("; no %s: %s", r.Rung, r.Why)
		}
		return s
	}
	s := fmt.Sprintf("%s: %q", c.Rung, c.Query)
	if !c.Filter.IsZero() {
		s += " where " + c.Filter.String()
	}
	if len(c.Collections) > 0 {
		s += " in " + strings.Join(c.Collections, ", ")
	}
	s += fmt.Sprintf(": %s, %d above the floor so far, %s", counted(f.Hits, "hit"), f.AboveFloor, f.Grade)
	if c.Why != "" {
		s += "; taken because " + c.Why
	}
	return s
}
