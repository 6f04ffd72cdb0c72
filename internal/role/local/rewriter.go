package local

import (
	"context"
	"fmt"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/role"
)

// Rewriter rewrites questions without a model. Resolve completes a follow-up from its
// conversation. Expand returns the question in other words of the domain, the question with
// its identifiers split into words, and its content words. HyDE and StepBack need a model
// and return no queries.
type Rewriter struct {
	// Words returns at most n wordings of a text in other words of the domain; it may be
	// nil.
	Words func(text string, n int) []string
}

// The bounds of a rewriting.
const (
	defaultWordings = 3
	maxWordings     = 8
	maxRewriting    = 400 // bytes of the longest query
)

// Rewrite implements role.Rewriter. It returns an error when ctx has ended; a technique that
// does not exist is assay.ErrInvalid.
func (r Rewriter) Rewrite(ctx context.Context, _ role.Caller, in role.RewriteInput) (role.Rewriting, error) {
	if err := ctx.Err(); err != nil {
		return role.Rewriting{}, err
	}
	question, most := visible.Line(in.Question), 1
	var made []string
	switch in.Technique {
	case role.Resolve:
		f := resolve(question, in.History)
		if f.open != "" {
			return role.Rewriting{Queries: []string{}, Open: f.open, Means: f.means}, nil
		}
		made = []string{f.question}
	case role.Expand:
		if most = defaultWordings; in.Most > 0 {
			most = min(in.Most, maxWordings)
		}
		if r.Words != nil {
			made = r.Words(question, most)
		}
		made = append(made, spelled(question), strings.Join(contentWords(question), " "))
	case role.HyDE, role.StepBack:
	default:
		return role.Rewriting{}, fmt.Errorf("rewrite with the technique %q: %w", string(in.Technique), assay.ErrInvalid)
	}
	out := role.Rewriting{Queries: []string{}}
	for _, q := range distinct(append([]string{question}, lines(made)...))[1:] {
		if q != "" && len(q) <= max(maxRewriting, 2*len(question)) && len(out.Queries) < most {
			out.Queries = append(out.Queries, q)
		}
	}
	return out, nil
}

func lines(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = visible.Line(t)
	}
	return out
}

var (
	identifier = lazyregexp.New(`\b(?:\p{L}[\p{L}\p{N}]*(?:[_.]\p{L}[\p{L}\p{N}]*)+|\p{L}*\p{Ll}\p{Lu}[\p{L}\p{N}]*)\b`)
	hump       = lazyregexp.New(`(\p{Ll})(\p{Lu})`)
)

// spelled returns a question with its identifiers split into words: "read header timeout" for
// ReadHeaderTimeout, "file name" for file_name.
func spelled(question string) string {
	return identifier.ReplaceAllStringFunc(question, func(name string) string {
		name = strings.NewReplacer("_", " ", ".", " ").Replace(name)
		return strings.ToLower(hump.ReplaceAllString(name, "$1 $2"))
	})
}
