package strategy_test

import (
	"testing"

	"github.com/assay-rag/assay/strategy"
)

func TestSpecsAreComplete(t *testing.T) {
	for _, s := range strategy.Specs() {
		if s.Name == "" || s.Func == nil || s.Source == "" || s.Defaults == "" || s.UsualCost == "" {
			t.Errorf("a field of strategy %q is empty", s.Name)
		}
		if s.Summary == "" || len(s.Summary) > 100 {
			t.Errorf("the summary of strategy %q has %d bytes, want one line", s.Name, len(s.Summary))
		}
	}
}

func TestLookup(t *testing.T) {
	for _, name := range []string{"", "auto"} {
		if s, err := strategy.Lookup(name); err != nil || s.Name != "auto" {
			t.Errorf("Lookup(%q) = %q, %v, want auto", name, s.Name, err)
		}
	}
	if _, err := strategy.Lookup("magic"); err == nil {
		t.Error("Lookup returns a strategy that does not exist")
	}
}
