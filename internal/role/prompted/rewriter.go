package prompted

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/role"
)

// Rewriter rephrases a question. With role.Expand the domain's synonyms come first, even if the
// model fails.
type Rewriter struct {
	Config
	Local role.Rewriter // used if the provider fails; nil: the cautious output
}

// rewritingReply is the reply requested from the model.
type rewritingReply struct {
	Queries []string `json:"queries"`
}

var rewritingOutput = outputOf[rewritingReply]("rewriting")

const (
	defaultQueries = 3
	maxQueries     = 8
	maxPassage     = 1000 // bytes of a HyDE passage
	shownAnswer    = 600  // bytes of an answer in the conversation
)

// Rewrite implements role.Rewriter. An unknown technique is assay.ErrInvalid.
func (r Rewriter) Rewrite(ctx context.Context, c role.Caller, in role.RewriteInput) (role.Rewriting, error) {
	switch in.Technique {
	case role.Resolve, role.Expand, role.HyDE, role.StepBack:
	default:
		return role.Rewriting{}, fmt.Errorf("rewrite with the technique %q: %w", string(in.Technique), assay.ErrInvalid)
	}
	most := 1
	if in.Technique == role.Expand {
		if most = defaultQueries; in.Most > 0 {
			most = min(in.Most, maxQueries)
		}
	}
	return typed[rewritingReply, role.Rewriting]{
		job: job[rewritingReply]{
			Config: r.Config, task: role.RewriterRole, out: rewritingOutput(), maxTokens: 400,
			write: writeRewriting(in, most),
			check: func(reply *rewritingReply) []string { return checkRewriting(reply, in, most) },
			salvage: func(reply *rewritingReply) ([]string, bool) {
				if in.Technique == role.Resolve {
					reply.Queries = nil
					return []string{"the model's rewriting adds names or numbers that are not in the conversation; the original question is searched"}, true
				}
				n := len(reply.Queries)
				short := slices.DeleteFunc(slices.Clone(reply.Queries), func(q string) bool { return tooLong(q, mostBytes(in)) != nil })
				reply.Queries = short[:min(len(short), most)]
				return []string{fmt.Sprintf("used %d of %d rewritings", len(reply.Queries), n)}, len(reply.Queries) > 0
			},
		},
		local:    ifAny(r.Local != nil, func() (role.Rewriting, error) { return r.Local.Rewrite(ctx, c, in) }),
		cautious: func(o role.Outcome) role.Rewriting { return r.rewriting(rewritingReply{}, o, in, most) },
		finish: func(reply rewritingReply, o role.Outcome) role.Rewriting {
			return r.rewriting(reply, o, in, most)
		},
	}.do(ctx, c)
}

// rewriting converts a reply to the output and adds the domain's synonyms.
func (r Rewriter) rewriting(reply rewritingReply, outcome role.Outcome, in role.RewriteInput, most int) role.Rewriting {
	out := role.Rewriting{Queries: []string{}, Outcome: outcome}
	add := func(q string) {
		same := func(o string) bool { return strings.EqualFold(q, o) }
		if q != "" && !same(line(in.Question)) && !slices.ContainsFunc(out.Queries, same) {
			out.Queries = append(out.Queries, q)
		}
	}
	if in.Technique == role.Expand {
		for _, v := range r.Domain.Variants(in.Question, most) {
			add(query(v))
		}
	}
	for _, q := range reply.Queries {
		add(query(q))
	}
	return out
}

// mostBytes returns the maximum length of a rewriting.
func mostBytes(in role.RewriteInput) int {
	if in.Technique == role.HyDE {
		return maxPassage
	}
	return max(maxQuery, 2*len(in.Question))
}

// writeRewriting shows as many turns of the conversation as fit, from the last one back.
func writeRewriting(in role.RewriteInput, texts int) func(prompt, int) (string, []string, bool) {
	turns := make([]string, len(in.History))
	for i, t := range in.History {
		turns[i] = "Question: " + line(t.Question) + "\nAnswer: " + shorten(line(t.Answer), shownAnswer)
	}
	return fitting(len(turns), "turns of the conversation, the last ones", func(k int) any {
		return map[string]any{"History": turns[len(turns)-k:], "Question": in.Question, "Technique": in.Technique, "Most": texts}
	})
}

// checkRewriting returns the problems of a rewriting. A rewriting that replaces the question may
// name only what the conversation names.
func checkRewriting(r *rewritingReply, in role.RewriteInput, most int) []string {
	var problems []string
	if n := len(r.Queries); n > most {
		problems = append(problems, fmt.Sprintf("there are %d texts; the limit is %d", n, most))
	}
	for _, q := range r.Queries {
		problems = append(problems, tooLong(q, mostBytes(in))...)
	}
	if in.Technique != role.Resolve {
		if len(r.Queries) == 0 {
			problems = append(problems, "there are no texts")
		}
		return problems
	}
	var said strings.Builder
	said.WriteString(in.Question)
	for _, t := range in.History {
		said.WriteString("\n" + t.Question + "\n" + t.Answer)
	}
	held := strings.ToLower(visible.Line(said.String()))
	for _, q := range r.Queries {
		nouned := sync.OnceValue(func() bool { return nounsCapitalised(q, held) || nounsCapitalised(in.Question, held) })
		for _, name := range append(lexical.Names(q), digits(q)...) {
			name = possessive.ReplaceAllString(visible.Line(name), "")
			if !strings.Contains(held, strings.ToLower(name)) && !(plainWord(name) && nouned()) {
				problems = append(problems, fmt.Sprintf("%q is not in the conversation", shorten(name, 60)))
			}
		}
	}
	return problems
}

// digits returns the numbers in a text that are written in digits, verbatim.
func digits(text string) []string {
	var out []string
	for _, w := range lexical.Words(text) {
		if w[0] >= '0' && w[0] <= '9' {
			out = append(out, w)
		}
	}
	return out
}
