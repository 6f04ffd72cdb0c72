// Package e2e tests assay from end to end: the program and the engine with complete providers,
// against well-behaved and hostile servers that speak each provider's format, and against a real
// model server.
package e2e

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// checkGoroutines checks that the test leaves no additional goroutines. The check runs after all
// cleanups that the test registers later.
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
