//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestJoint is the small form of the program, with ASSAY_LONG=1. The index is in OpenSearch if there are nodes.
func TestJoint(t *testing.T) {
	if os.Getenv("ASSAY_LONG") == "" {
		t.Skip("ASSAY_LONG is not set")
	}
	if os.Getenv("ASSAY_TEST_POSTGRES_BIN") == "" {
		t.Skip("ASSAY_TEST_POSTGRES_BIN names no folder with PostgreSQL's programs: run the test by scripts/postgres")
	}
	data := os.Getenv("ASSAY_TESTDATA")
	if data == "" {
		data = "../../../shared"
	}
	data = filepath.Join(data, "data", "retrieval")
	if missing(data) {
		t.Skipf("%s has no data sets", data)
	}
	index := "own"
	if os.Getenv("ASSAY_TEST_OPENSEARCH_RIG") != "" {
		index = "opensearch"
	}
	t.Chdir("../..")
	r, err := run(t.Context(), options{
		documents: 200, questions: 40, kills: 8, uploads: 4, asks: 2, sample: 20,
		index: index, strategy: "static", data: data, seed: 1, log: t.Logf,
	})
	if r != nil {
		var b strings.Builder
		if err := r.write(&b); err != nil {
			t.Error(err)
		}
		t.Log(b.String())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, failure := range r.Failures {
		t.Error(failure)
	}
}

// TestEvents reads the end of a run from its events. An event that was cut off does not count.
func TestEvents(t *testing.T) {
	for _, x := range []struct {
		stream string
		want   outcome
		ended  bool
	}{
		{"event: step\ndata: {}\n\nevent: answer\ndata: {\"status\":\"answered\"}\n\n", outcome{status: "answered"}, true},
		{"event: answer\ndata: {\"status\":\"answered\"}\n", outcome{}, false},
		{"event: error\ndata: {\"detail\":\"closing\",\"resumable\":true}\n\n", outcome{}, false},
		{"event: error\ndata: {\"detail\":\"it failed\"}\n\n", outcome{status: "failed", reason: "it failed"}, true},
		{"", outcome{}, false},
	} {
		if got, ended := lastEvent([]byte(x.stream)); got != x.want || ended != x.ended {
			t.Errorf("%q: %+v, %t", x.stream, got, ended)
		}
	}
}

// TestPacer lets the load not run ahead of the kills.
func TestPacer(t *testing.T) {
	p := newPacer(10)
	to := make(chan int)
	go func() { _ = p.feed(t.Context(), to, 100, true) }()
	for want := range 20 {
		if got := <-to; got != want {
			t.Fatalf("%d, want %d", got, want)
		}
	}
	select {
	case n := <-to:
		t.Fatalf("%d before any kill", n)
	default:
	}
	p.killed()
	if err := p.wait(t.Context(), 21, 0); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		p.killed()
	}
	n := 20
	for range to {
		n++
	}
	if n != 100 {
		t.Errorf("%d numbers", n)
	}
}
