package local_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/local"
)

func ExampleOpenDir() {
	ctx := context.Background()
	encoder, err := local.OpenDir(ctx, "testdata/tiny", local.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	vectors, err := encoder.Embed(ctx, llm.Query, []string{"which market is in the river?"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(encoder.Model(), len(vectors[0]), encoder.Tokens("the river"), encoder.MaxTokens())

	_, err = encoder.Embed(ctx, llm.Query, []string{strings.Repeat("river ", 100)})
	fmt.Println(err)
	// Output:
	// tiny@de30aa09/32 32 4 64
	// text 0 has 102 tokens, tiny@de30aa09/32 takes 64
}
