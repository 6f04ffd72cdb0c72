package strategy_test

import (
	"testing"

	"github.com/assay-rag/assay/strategy"
)

func TestEveryStrategyIsDescribed(t *testing.T) {
	for _, name := range strategy.Names() {
		if text := strategy.Describe(name); text == "" || len(text) > 90 {
			t.Errorf("%s is described as %q", name, text)
		}
	}
	if text := strategy.Describe("magic"); text != "" {
		t.Errorf("a strategy that does not exist is described as %q", text)
	}
}
