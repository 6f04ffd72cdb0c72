package llm_test

import (
	"context"
	"fmt"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
)

// Ask a model, here a scripted one, and read its words while it writes them.
func ExampleModel() {
	var model llm.Model = &llmtest.Scripted{Name: "openai/gpt-4.1", Reply: llmtest.Say("Five days.")}
	reply, err := model.Generate(context.Background(), llm.Request{
		Messages:  []llm.Message{{Speaker: llm.User, Text: "How many days may be carried over?"}},
		MaxTokens: 100,
	}, func(d llm.Delta) { fmt.Printf("%q\n", d.Text) })
	fmt.Println(model.Model(), reply.Text, err)
	// Output:
	// "Five "
	// "days."
	// openai/gpt-4.1 Five days. <nil>
}
