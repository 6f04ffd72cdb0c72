package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var (
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	// namedCommand matches the beginning of a command line in code: assay and the lower-case words after it.
	namedCommand = regexp.MustCompile(`(?:^|[;&|(] *|\$ )assay((?: [a-z][a-z-]*)+)`)
	flagName     = regexp.MustCompile(`(?:^| )--([a-z][a-z-]*)`)
)

// TestDocCommands checks that every command of assay that the documents name in code exists, with its
// flags.
func TestDocCommands(t *testing.T) {
	t.Parallel()
	root := (&app{}).rootCommand()
	files, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	files = append(files, filepath.Join("..", "..", "README.md"), filepath.Join("..", "..", "SECURITY.md"))
	found := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fenced := false
		for i, line := range strings.Split(string(data), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
				continue
			}
			code := []string{line}
			if !fenced {
				code = nil
				for _, m := range codeSpan.FindAllStringSubmatch(line, -1) {
					code = append(code, m[1])
				}
			}
			for _, text := range code {
				n, faults := commandFaults(root, text)
				found += n
				for _, f := range faults {
					t.Errorf("%s:%d: %s", filepath.Base(file), i+1, f)
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("%d commands found", found)
	}
}

// commandFaults returns how many commands of assay a piece of code names, and which do not exist.
func commandFaults(root *cobra.Command, text string) (n int, faults []string) {
	all := namedCommand.FindAllStringSubmatchIndex(text, -1)
	for i, at := range all {
		end := len(text)
		if i+1 < len(all) {
			end = all[i+1][0]
		}
		words, rest := strings.Fields(text[at[2]:at[3]]), text[at[2]:end]
		cmd, args, err := root.Find(words)
		if err != nil || cmd == root {
			faults = append(faults, "there is no command assay "+strings.Join(words, " "))
			continue
		}
		if cmd.HasSubCommands() && len(args) > 0 && (!cmd.Runnable() || cmd.ValidateArgs(args) != nil) {
			faults = append(faults, cmd.CommandPath()+" has no command "+args[0])
			continue
		}
		rest, _, _ = strings.Cut(rest, " | ")
		for _, m := range flagName.FindAllStringSubmatch(rest, -1) {
			if cmd.Flag(m[1]) == nil && m[1] != "help" {
				faults = append(faults, cmd.CommandPath()+" has no flag --"+m[1])
			}
		}
	}
	return len(all), faults
}

func TestCommandFaults(t *testing.T) {
	t.Parallel()
	root := (&app{}).rootCommand()
	for text, want := range map[string]string{
		`assay webhook deliver --watch`:              "",
		`assay webhook deliver --forever`:            "assay webhook deliver has no flag --forever",
		`assay webhook send`:                         "assay webhook has no command send",
		`export A=b; assay asks`:                     "there is no command assay asks",
		`assay ask "assay x" --json`:                 "",
		`$ assay review show RUN --jsn`:              "assay review show has no flag --jsn",
		`assay limit list; assay limit sett x`:       "assay limit has no command sett",
		`assay limit list | grep --color x`:          "",
		`assay governance report --html FILE --help`: "",
	} {
		if n, got := commandFaults(root, text); strings.Join(got, "; ") != want || n == 0 {
			t.Errorf("%s: %d commands, %q; want %q", text, n, got, want)
		}
	}
}
