package assay_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSecurityNamesTests checks that the tests which docs/security.md names exist.
func TestSecurityNamesTests(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z/]+)\\.(Test[A-Za-z]+)`").FindAllStringSubmatch(string(data), -1)
	if len(named) < 20 {
		t.Errorf("docs/security.md names %d tests, want 20 or more", len(named))
	}
	for _, m := range named {
		files, err := filepath.Glob(filepath.Join(filepath.FromSlash(m[1]), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found = found || strings.Contains(string(source), "func "+m[2]+"(t *testing.T)")
		}
		if !found {
			t.Errorf("docs/security.md names the test %s of %s, which does not exist", m[2], m[1])
		}
	}
}
