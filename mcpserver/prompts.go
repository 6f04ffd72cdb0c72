package mcpserver

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// promptName is the name of the prompt.
const promptName = "cited_answer"

func (s *service) addPrompts(m *mcp.Server) {
	m.AddPrompt(&mcp.Prompt{
		Name: promptName, Title: "Answer with citations",
		Description: "Answers a question from the documents, with verified citations.",
		Arguments: []*mcp.PromptArgument{
			{Name: "question", Title: "Question", Description: "what to answer", Required: true},
			{Name: "collection", Title: "Collection", Description: "search only this collection"},
			{Name: "document", Title: "Document", Description: "title of a document to look at"},
		},
	}, citedAnswer)
}

// mostArgument is the most bytes of an argument of a prompt.
const mostArgument = 8 << 10

func citedAnswer(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	given := req.Params.Arguments
	for name, value := range given {
		if len(value) > mostArgument {
			return nil, invalid("argument " + name)
		}
	}
	question := strings.TrimSpace(given["question"])
	if question == "" {
		return nil, invalid("argument question: it is required")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Answer this question from the documents: %s\n\nCall the tool ask with it", question)
	if c := given["collection"]; c != "" {
		fmt.Fprintf(&b, ", and with collections set to [%q]", c)
	}
	b.WriteString(`. Give its text and, for each number in brackets, the quote and where it is from. Add nothing that it does not say. ` +
		`If the status is not "answered", say what is missing. If ask_back is set, ask me that.`)
	if d := given["document"]; d != "" {
		fmt.Fprintf(&b, " Then say whether the document %q agrees: find it with search and read it with fetch.", d)
	}
	return &mcp.GetPromptResult{
		Description: "Answers a question from the documents, with verified citations.",
		Messages:    []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: b.String()}}},
	}, nil
}
