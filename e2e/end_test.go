// Package e2e tests assay from end to end: the program and the engine with whole
// providers, against servers that speak each provider's format, well and badly, and
// against a real model server.
package e2e

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// checkGoroutines checks, after everything that the test cleans up from now on, that
// no goroutine is left but those that are there now.
func checkGoroutines(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		if err := goleak.Find(before); err != nil {
			t.Errorf("goroutines are left: %v", err)
		}
	})
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}
