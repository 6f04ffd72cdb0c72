package resilient_test

import (
	"context"
	"fmt"
	"time"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/llm/resilient"
)

// One guard serves all models of an endpoint. The request sets the number of attempts.
func ExampleGuard_Model() {
	guard := resilient.New(resilient.Config{Requests: 500, Tokens: 200_000, Backoff: time.Millisecond})
	flaky := llmtest.HostileModel(&llmtest.Scripted{Name: "openai/gpt-4.1", Reply: llmtest.Say("Five days.")}, "500 every other time")
	model := guard.Model(flaky, llm.Facts{Window: 1_000_000})

	reply, err := model.Generate(context.Background(), llm.Request{
		Messages:  []llm.Message{{Speaker: llm.User, Text: "How many days may be carried over?"}},
		MaxTokens: 100, Attempts: 3,
	}, nil)
	fmt.Println(reply.Text, err)
	fmt.Println(reply.Usage.Calls, "calls, before it:", reply.Attempts)
	// Output:
	// Five days. <nil>
	// 2 calls, before it: [{server error HTTP 500: as the test wants it}]
}
