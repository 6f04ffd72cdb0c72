package main

import (
	"strings"
	"testing"

	"github.com/assay-rag/assay/engine"
)

func TestDraftOfATrace(t *testing.T) {
	t.Parallel()
	d := &draft{trace: true}
	for _, piece := range []string{"{\n\n \t\n", "  \"a\":", " 1 \n", "}", "\n\n\n"} {
		d.add(engine.Event{Kind: engine.Draft, Path: "p", Draft: piece})
	}
	var out strings.Builder
	d.print(&out, "other")
	d.print(&out, "p")
	d.print(&out, "p") // already printed
	want := "           unverified draft | {\n           unverified draft |   \"a\": 1\n           unverified draft | }\n"
	if out.String() != want {
		t.Errorf("got:\n%swant:\n%s", out.String(), want)
	}
}
