package engine_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/provider/embedded"
)

// Open a data directory, ingest a folder and ask a question.
func Example() {
	ctx, dir := context.Background(), tempDir()
	defer os.RemoveAll(dir)

	e, err := engine.Open(ctx, engine.Config{Dir: dir, Encoders: embedded.Encoders{}})
	check(err)
	defer e.Close()
	_, err = e.Ingest(ctx, engine.IngestRequest{Paths: []string{"testdata/handbook"}})
	check(err)
	answer, err := e.Answer(ctx, assay.Local(), engine.Request{Question: "Who approves travel to a customer?"})
	check(err)

	c := answer.Citations[0]
	fmt.Printf("%s, line %d: %s\n", c.Title, c.Line, c.Quote)
	// Output: Travel, line 10: Travel to a customer is approved by the head of the department.
}

// Show the steps of a question while it is being answered.
func ExampleEngine_Ask() {
	e, done := handbook(engine.Config{})
	defer done()

	req := engine.Request{Question: "Who approves travel to a customer?", Strategy: "static"}
	for ev, err := range e.Ask(context.Background(), assay.Local(), req) {
		check(err)
		switch ev.Kind {
		case engine.StepEnded:
			fmt.Println("step:", ev.Step.Kind)
		case engine.RunEnded:
			fmt.Println("status:", ev.Answer.Status)
		}
	}
	// Output:
	// step: search
	// step: grade
	// step: generate
	// step: read
	// step: verify
	// step: role
	// status: answered
}

func tempDir() string {
	dir, err := os.MkdirTemp("", "assay")
	check(err)
	return dir
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
