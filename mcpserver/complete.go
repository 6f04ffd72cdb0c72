package mcpserver

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// Bounds of a completion.
const (
	mostValues  = 100    // the protocol's
	mostScanned = 20_000 // documents looked at
)

// complete offers values for the arguments of the prompt and of the template that the caller may see:
// names of collections, titles of documents, and the IDs of documents by title or ID.
func (s *service) complete(ctx context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	session, err := s.session(req.Extra)
	if err != nil {
		return nil, s.protocolError(ctx, "completion/complete", err)
	}
	ref, argument := req.Params.Ref, req.Params.Argument
	prompt := ref.Type == "ref/prompt" && ref.Name == promptName
	template := ref.Type == "ref/resource" && ref.URI == documentTemplate
	prefix := strings.ToLower(argument.Value)
	var found completion
	switch {
	case prompt && argument.Name == "collection":
		err = found.collections(ctx, session, prefix)
	case prompt && argument.Name == "document":
		err = found.documents(ctx, session, prefix, func(d assay.Document) (name, value string) {
			title := titleOf(d.Title, d.URI)
			return title, title
		})
	case template && argument.Name == "id":
		err = found.documents(ctx, session, prefix, func(d assay.Document) (name, value string) {
			if strings.HasPrefix(d.ID, prefix) {
				return d.ID, d.ID
			}
			return titleOf(d.Title, d.URI), d.ID
		})
	case !prompt && !template:
		return nil, invalid("ref")
	}
	if err != nil {
		return nil, s.protocolError(ctx, "completion/complete", err)
	}
	details := mcp.CompletionResultDetails{Values: found.values, HasMore: found.more}
	if details.Values == nil {
		details.Values = []string{}
	}
	return &mcp.CompleteResult{Completion: details}, nil
}

// A completion collects distinct values.
type completion struct {
	values []string
	seen   map[string]bool
	more   bool
}

// add adds a value and returns false if there is no room for it.
func (c *completion) add(value string) bool {
	if c.seen[value] {
		return true
	}
	if len(c.values) == mostValues {
		c.more = true
		return false
	}
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	c.seen[value] = true
	c.values = append(c.values, value)
	return true
}

func (c *completion) collections(ctx context.Context, s *engine.Session, prefix string) error {
	all, err := s.Collections(ctx)
	for _, one := range all {
		if strings.HasPrefix(strings.ToLower(one.Name), prefix) && !c.add(one.Name) {
			break
		}
	}
	return err
}

// documents adds the values of the documents whose names have a word that begins with prefix.
func (c *completion) documents(ctx context.Context, s *engine.Session, prefix string, of func(assay.Document) (name, value string)) error {
	scanned := 0
	for d, err := range s.Documents(ctx) {
		if err != nil {
			return err
		}
		if scanned++; scanned > mostScanned {
			c.more = true
			return nil
		}
		name, value := of(d)
		name = strings.ToLower(name)
		if (strings.HasPrefix(name, prefix) || strings.Contains(name, " "+prefix)) && !c.add(value) {
			return nil
		}
	}
	return nil
}
