package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// The most lines and columns of a command's help, which has to fit on one screen.
const (
	helpLines   = 40
	helpColumns = 100
)

// TestHelp checks that the help of every command fits on one screen, and that the help of a command
// with arguments or flags of its own has an example.
func TestHelp(t *testing.T) {
	var paths [][]string
	var walk func(cmd *cobra.Command, path []string)
	walk = func(cmd *cobra.Command, path []string) {
		paths = append(paths, path)
		if len(path) > 0 && path[0] == "completion" { // cobra writes its help
			return
		}
		for _, sub := range cmd.Commands() {
			walk(sub, append(path[:len(path):len(path)], sub.Name()))
		}
	}
	walk(newApp().rootCommand(), nil)
	if len(paths) < 25 {
		t.Fatalf("%d commands, want 25 or more", len(paths))
	}
	for _, path := range paths {
		t.Run(strings.Join(append([]string{"assay"}, path...), " "), func(t *testing.T) {
			var help, complaint strings.Builder
			a := newApp()
			a.stdout, a.stderr = &output{w: &help}, &output{w: &complaint}
			if code := a.run(t.Context(), append(path[:len(path):len(path)], "--help")); code != exitAnswered || complaint.Len() > 0 {
				t.Fatalf("--help exits with %d and prints %q on standard error", code, complaint.String())
			}
			checkHelp(t, help.String())
		})
	}
}

// checkHelp checks the size of a help text and its example.
func checkHelp(t *testing.T, help string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(help, "\n"), "\n")
	if len(lines) > helpLines {
		t.Errorf("the help has %d lines, want at most %d:\n%s", len(lines), helpLines, help)
	}
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > helpColumns {
			t.Errorf("a line of %d columns, want at most %d: %s", n, helpColumns, line)
		}
	}
	_, usage, _ := strings.Cut(help, "Usage:\n")
	usage, _, _ = strings.Cut(usage, "\n")
	takes := strings.ContainsAny(strings.TrimSuffix(usage, "[flags]"), "[]|\"") || strings.ToLower(usage) != usage
	if takes && !strings.Contains(help, "\nExamples:\n") {
		t.Errorf("the command takes arguments, but its help has no example: %s", usage)
	}
}
