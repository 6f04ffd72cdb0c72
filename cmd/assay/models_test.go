package main

import (
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/assay-rag/assay/llm"
)

// startModel implements the script command "model NAME FORMAT [fail=KIND] [echo]", which starts a
// fake model server. It sets $NAME to the server's URL without the format's paths.
func startModel(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: model NAME FORMAT [fail=KIND] [echo]")
	}
	f, err := newFakeModel(args[1])
	ts.Check(err)
	ts.Defer(func() { f.CloseClientConnections(); f.Close() })
	fail, echo := llm.ErrorKind(""), false
	for _, how := range args[2:] {
		kind, failing := strings.CutPrefix(how, "fail=")
		switch {
		case failing:
			fail = llm.ErrorKind(kind)
		case how == "echo":
			echo = true
		default:
			ts.Fatalf("model: unknown setting %q", how)
		}
	}
	f.behave(fail, echo)
	url := f.URL
	if args[1] == "openai" || args[1] == "ollama" {
		url += "/v1"
	}
	ts.Setenv(args[0], url)
}

// substitute implements the script command "envsubst FILE", which expands variables in a file.
func substitute(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: envsubst FILE")
	}
	text := os.Expand(ts.ReadFile(args[0]), ts.Getenv)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}
