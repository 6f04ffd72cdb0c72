package standalone_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/standalone"
)

// Open a data directory, ingest a folder and ask a question in other words than the document's.
func Example() {
	ctx, dir := context.Background(), tempDir()
	defer os.RemoveAll(dir)
	notes := filepath.Join(dir, "notes")
	write(filepath.Join(notes, "badges.md"), "# Badges\n\nVisitors wear a badge on all floors.\n")

	e, err := standalone.Open(ctx, filepath.Join(dir, "data"))
	check(err)
	defer e.Close()
	_, err = e.Ingest(ctx, engine.IngestRequest{Paths: []string{notes}, Wait: true})
	check(err)
	a, err := e.Answer(ctx, assay.Local(), engine.Request{Question: "What do visitors wear?"})
	check(err)

	fmt.Println(a.Status)
	fmt.Println(a.Citations[0].Quote)
	// Output:
	// answered
	// Visitors wear a badge on all floors.
}

// Change the configuration, here to answer every question anew.
func ExampleOpen() {
	dir := tempDir()
	defer os.RemoveAll(dir)
	e, err := standalone.Open(context.Background(), dir, func(c *engine.Config) {
		c.NoCache = true
		c.Strategy = "corrective"
	})
	check(err)
	defer e.Close()

	vectors, err := e.Vectors(context.Background())
	check(err)
	fmt.Println(vectors.Wanted)
	// Output: gte-small-int8@50b99043/384
}

func tempDir() string {
	dir, err := os.MkdirTemp("", "assay")
	check(err)
	return dir
}

func write(path, text string) {
	check(os.MkdirAll(filepath.Dir(path), 0o700))
	check(os.WriteFile(path, []byte(text), 0o600))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
