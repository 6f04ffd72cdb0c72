package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// underRace says that the tests run under the race detector, whose processes are 20 times slower and
// need more memory than the program's limits leave them.
var underRace bool

// buildBinary builds the program as a user does and returns its path. With -short it copies the test
// binary instead, which is the program if it is named assay. Under the race detector it builds that
// one without it. Every user of the machine may read its folder.
var buildBinary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "assay-binary-")
	if err != nil {
		return "", err
	}
	binaryDir = dir
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "assay")
	build := exec.Command("go", "build", "-o", binary, ".")
	switch {
	case underRace:
		build = exec.Command("go", "test", "-c", "-o", binary, ".")
	case testing.Short():
		return binary, copyTestBinary(binary)
	}
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return binary, nil
})

// copyTestBinary links or copies the running test binary to a path.
func copyTestBinary(to string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if os.Link(self, to) == nil {
		return os.Chmod(to, 0o755)
	}
	data, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}
