package local

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/role"
)

// Rewriter rewrites questions by grammar, in English alone. It has no words of its
// own: what it makes is put together from the question, the conversation and the
// domain's words. Where it does not know a question's form it makes nothing of it.
//
// Resolve is right or silent rather than helpful: what a pronoun stands for has to
// be plain from the turns before. Expand, HyDE and StepBack are as the fields of
// role.Technique say, without synonyms or knowledge.
type Rewriter struct {
	// Words returns the wordings of a text in the domain's other words, at most n; nil:
	// there are none.
	Words func(text string, n int) []string
}

// The bounds of a rewriting.
const (
	defaultWordings = 3
	maxWordings     = 8
	maxRewriting    = 400 // bytes; what is longer is no question to search with
)

// Rewrite implements role.Rewriter. It returns an error when ctx has ended; a
// technique that does not exist is assay.ErrInvalid.
func (r Rewriter) Rewrite(ctx context.Context, _ role.Caller, in role.RewriteInput) (role.Rewriting, error) {
	if err := ctx.Err(); err != nil {
		return role.Rewriting{}, err
	}
	question, most := visible.Line(in.Question), 1
	var made []string
	switch in.Technique {
	case role.Resolve:
		u := resolve(question, in.History)
		if u.open != "" {
			return role.Rewriting{Queries: []string{}, Open: u.open, Means: u.means}, nil
		}
		made = []string{u.question}
	case role.Expand:
		if most = defaultWordings; in.Most > 0 {
			most = min(in.Most, maxWordings)
		}
		if r.Words != nil {
			made = r.Words(question, most)
		}
		made = append(made, wordings(question)...)
	case role.HyDE:
		made = []string{declared(question)}
	case role.StepBack:
		made = []string{general(question)}
	default:
		return role.Rewriting{}, fmt.Errorf("rewrite with the technique %q: %w", string(in.Technique), assay.ErrInvalid)
	}
	out := role.Rewriting{Queries: []string{}}
	for _, q := range made {
		same := func(o string) bool { return strings.EqualFold(o, q) }
		if q = visible.Line(q); q == "" || len(q) > max(maxRewriting, 2*len(question)) || same(question) || slices.ContainsFunc(out.Queries, same) {
			continue
		}
		if out.Queries = append(out.Queries, q); len(out.Queries) == most {
			break
		}
	}
	return out, nil
}
