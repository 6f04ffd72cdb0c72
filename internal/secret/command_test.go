//go:build unix

package secret_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
)

func TestCommand(t *testing.T) {
	t.Parallel()
	got, err := secret.Command(t.Context(), `printf '  %s \nsecond\n' "`+canary+`"`)
	if err != nil || got.Reveal() != canary {
		t.Errorf("%q, %v", got.Reveal(), err)
	}
	for name, line := range map[string]string{
		"failing":     `sh -c 'echo ` + canary + `; echo ` + canary + ` >&2; exit 3'`,
		"silent":      "true",
		"missing":     "/nonexistent/" + canary[:4],
		"empty":       "  ",
		"open quote":  `echo "` + canary,
		"endless":     "cat /dev/zero",
		"empty first": `printf '\n` + canary + `\n'`,
	} {
		_, err := secret.Command(t.Context(), line)
		if !errors.Is(err, assay.ErrInvalid) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCommandKilled checks that a command and its children end with the context. The child would
// otherwise hold the pipe open, and the test would not end.
func TestCommandKilled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	started := filepath.Join(t.TempDir(), "started")
	go func() {
		for {
			if _, err := os.Stat(started); err == nil {
				cancel()
				return
			}
		}
	}()
	_, err := secret.Command(ctx, `sh -c 'touch `+started+`; sleep 1000 & sleep 1000; echo done'`)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		`pass show openai`: {"pass", "show", "openai"},
		`a "b c" 'd e'f`:   {"a", "b c", "d ef"},
		`a \" "" '\'`:      {"a", `"`, "", `\`},
		``:                 nil,
	} {
		if got, err := secret.Words(line); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v", line, got, err)
		}
	}
}
