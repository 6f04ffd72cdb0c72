package notices

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestModules compares the notices with the modules of the program on this system. It uses no
// network.
func TestModules(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, n := range all {
		versions[n.Name] = n.Version
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "./cmd/assay", "./cmd/assay-lambda")
	cmd.Dir, cmd.Stderr = filepath.Join("..", ".."), os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOPROXY=off", "GOFLAGS=-mod=readonly")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(out))
	if len(lines) < 100 {
		t.Fatalf("go list names %d modules", len(lines)/2)
	}
	for pair := range slices.Chunk(lines, 2) {
		if got := versions[pair[0]]; got != pair[1] {
			t.Errorf("the notice of %s is of version %q, the program has %s; run go generate ./internal/notices", pair[0], got, pair[1])
		}
	}
}

func TestTexts(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(all, func(a, b Notice) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the notices are not sorted by name")
	}
	own := 0
	for _, n := range all {
		if n.License == "" || len(n.Texts) == 0 {
			t.Errorf("%s has no licence", n.Name)
		}
		for _, text := range n.Texts {
			if strings.TrimSpace(text.Text) == "" {
				t.Errorf("%s: %s is empty", n.Name, text.File)
			}
			if n.Version != "" || strings.HasPrefix(n.Name, "Go,") {
				continue
			}
			own++
			data, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(text.File)))
			if err != nil || string(data) != text.Text {
				t.Errorf("%s: its text is not that of %s, %v; run go generate ./internal/notices", n.Name, text.File, err)
			}
		}
	}
	if own < 3 {
		t.Errorf("%d texts of embedded parts, want PDFium's, its build's and the encoder's", own)
	}
}

// TestEmbedded fails when a folder with a licence of its own is embedded without a notice.
func TestEmbedded(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"LICENSE": true} // assay's own
	for _, n := range all {
		for _, text := range n.Texts {
			known[text.File] = known[text.File] || n.Version == ""
		}
	}
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "--", "*LICENSE*", "*COPYING*", "*NOTICE*")
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.Output()
	if err != nil {
		t.Skip("no git repository: ", err)
	}
	for _, file := range strings.Fields(string(out)) {
		if !known[file] && !strings.Contains(file, "testdata/") {
			t.Errorf("%s is in no notice: add it to internal/notices/generate", file)
		}
	}
}

func TestIdentify(t *testing.T) {
	for text, want := range map[string]string{
		"Permission is hereby granted, free of charge,\n to any person obtaining a copy": "MIT",
		"Apache License\n                           Version 2.0, January 2004":           "Apache-2.0",
		"All rights reserved.": "",
	} {
		if got := Identify(text); got != want {
			t.Errorf("Identify(%q) = %q, want %q", text, got, want)
		}
	}
}
