package prompted

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// Verifier judges claims against the passages that they cite, several at a time. It fails closed: a
// claim that the model does not judge, or judges twice, is Unsupported, and so are all claims if
// the provider fails. It ignores the domain, which cannot change how claims are checked.
//
// A claim is Supported only with a quote from the passages that it cites. The text that the model
// reads may itself have influenced the verdict, so callers combine it with checks that no text can
// influence; see [role.Guarded].
type Verifier struct {
	Config // Domain is not used
}

// maxBatch is the number of claims that one call judges, and verdictTokens the number of tokens for
// one verdict.
const (
	maxBatch      = 8
	verdictTokens = 180
)

// verdictsReply is the reply requested from the model.
type verdictsReply struct {
	Verdicts []verdictReply `json:"verdicts"`
}

type verdictReply struct {
	Claim   int           `json:"claim"` // from 1, in the call
	Reason  string        `json:"reason,omitempty"`
	Quotes  []string      `json:"quotes,omitempty"` // of the claim's sources
	Verdict assay.Verdict `json:"verdict"`
	Score   float64       `json:"score"`
}

var verdictsOutput = outputOf[verdictsReply]("verdicts")

// Verify implements role.Verifier.
func (v Verifier) Verify(ctx context.Context, c role.Caller, claims []role.Claim) ([]ground.Judgement, error) {
	out := make([]ground.Judgement, len(claims))
	var open []int // claims that need a verdict from the model
	for i, claim := range claims {
		if len(claim.Cited) == 0 {
			out[i] = ground.Judgement{Verdict: assay.Unsupported, Reason: "cites nothing"}
			continue
		}
		open = append(open, i)
	}
	for len(open) > 0 {
		n, err := v.batch(ctx, c, claims, open, out)
		if err != nil {
			return nil, err
		}
		open = open[n:]
	}
	return out, nil
}

// batch judges as many of the open claims as fit into one prompt, and returns how many, at least
// one. If the provider fails, it settles all of them.
func (v Verifier) batch(ctx context.Context, c role.Caller, claims []role.Claim, open []int, out []ground.Judgement) (int, error) {
	v.Domain = nil
	which, shown := open[:min(maxBatch, len(open))], 0
	if w := llm.FactsOf(v.Model).Window; w > 0 { // leave room for the verdicts in a small window
		which = which[:max(1, min(len(which), w/4/verdictTokens))]
	}
	j := job[verdictsReply]{
		Config: v.Config, task: role.VerifierRole, out: verdictsOutput(), maxTokens: verdictTokens * (len(which) + 1),
		write: func(p prompt, room int) (string, []string, bool) {
			user := func(k int) string { return p.render(map[string]any{"Claims": claimsOf(claims, which[:k])}) }
			shown = most(len(which), func(k int) bool { return llm.EstimateTokens(user(k)) <= room })
			return user(shown), nil, shown > 0
		},
		check: func(r *verdictsReply) []string {
			return append(checkVerdicts(r, shown), checkQuotes(r, claims, which[:shown])...)
		},
		salvage: func(*verdictsReply) ([]string, bool) { return nil, true },
	}
	reply, outcome, err := ask(ctx, c, j)
	if failed(ctx, err) {
		outcome, err = without(j.task, err), nil
		which, shown = open, len(open)
	}
	if err != nil {
		return 0, err
	}
	if shown == 0 { // this claim is too long for the model; the others may not be
		shown = 1
	}
	if outcome.Failure != "" {
		for _, i := range which[:shown] {
			out[i] = ground.Judgement{Verdict: assay.Unsupported, Reason: "the verifier failed: " + outcome.Failure, Failed: true}
		}
		return shown, nil
	}
	for at, i := range which[:shown] {
		j, quotes := judgementOf(reply, at+1)
		out[i] = decided(j, quotes, claims[i])
	}
	return shown, nil
}

// A labelled text is data with its name in a prompt.
type labelled struct {
	Name, Text string
}

// A claimData is the template data of a claim.
type claimData struct {
	labelled
	Sources []labelled
}

func claimsOf(claims []role.Claim, which []int) []claimData {
	var out []claimData
	for at, i := range which {
		d := claimData{labelled: labelled{fmt.Sprintf("claim number=\"%d\"", at+1), claims[i].Alone()}}
		for _, p := range claims[i].Cited {
			name := fmt.Sprintf("source of_claim=\"%d\"", at+1)
			d.Sources = append(d.Sources, labelled{name, strings.Join(p.Heading, " › ") + marked(p.Obtained) + "\n" + p.Quote})
			if near := around(p); near != "" {
				d.Sources = append(d.Sources, labelled{"around", near})
			}
		}
		out = append(out, d)
	}
	return out
}

// checkVerdicts returns the problems of the verdicts.
func checkVerdicts(r *verdictsReply, claims int) []string {
	var problems []string
	judged := map[int]int{}
	for _, v := range r.Verdicts {
		judged[v.Claim]++
		if v.Claim < 1 || v.Claim > claims {
			problems = append(problems, fmt.Sprintf("claim %d does not exist; there are %d", v.Claim, claims))
		}
		if v.Score < 0 || v.Score > 1 {
			problems = append(problems, fmt.Sprintf("the score of claim %d is %v, not between 0 and 1", v.Claim, v.Score))
		}
	}
	for n := 1; n <= claims; n++ {
		if judged[n] != 1 {
			problems = append(problems, fmt.Sprintf("claim %d has %d verdicts; want exactly one", n, judged[n]))
		}
	}
	return problems
}

// judgementOf returns the model's verdict on a claim. The claim is Unsupported unless there is
// exactly one readable verdict.
func judgementOf(r verdictsReply, number int) (j ground.Judgement, quotes []string) {
	none := ground.Judgement{Verdict: assay.Unsupported, Reason: "the verifier returned no verdict", Failed: true}
	found, seen := none, 0
	for _, v := range r.Verdicts {
		if v.Claim != number {
			continue
		}
		seen++
		if v.Score < 0 || v.Score > 1 {
			return none, nil
		}
		found = ground.Judgement{Verdict: v.Verdict, Score: v.Score, Reason: shorten(visible.Line(v.Reason), 300)}
		quotes = v.Quotes
	}
	if seen != 1 {
		return none, nil
	}
	switch {
	case found.Verdict != assay.Supported:
		found.Score = min(found.Score, 0.5)
	case found.Score < 0.5:
		found.Verdict, found.Reason = assay.Unsupported, "the verifier is not sure: "+found.Reason
	}
	return found, quotes
}

// checkQuotes returns the quotes that are not in the passages cited, and the claims called
// supported without a quote.
func checkQuotes(r *verdictsReply, claims []role.Claim, which []int) []string {
	var problems []string
	for _, v := range r.Verdicts {
		if v.Claim < 1 || v.Claim > len(which) {
			continue
		}
		spans, wrong := spansOf(v.Quotes, claims[which[v.Claim-1]].Cited)
		switch {
		case wrong != "":
			problems = append(problems, fmt.Sprintf("the quote %q of claim %d is not in its sources; copy their words", shorten(line(wrong), 100), v.Claim))
		case v.Verdict == assay.Supported && len(spans) == 0:
			problems = append(problems, fmt.Sprintf("claim %d is supported without a quote from its sources", v.Claim))
		}
	}
	return problems
}

// decided returns j with the spans of its quotes. A verdict of Supported without a quote, or with
// one that is not in the passages, becomes Unsupported.
func decided(j ground.Judgement, quotes []string, claim role.Claim) ground.Judgement {
	var wrong string
	j.Spans, wrong = spansOf(quotes, claim.Cited)
	switch {
	case j.Verdict != assay.Supported:
		return j
	case wrong != "":
		return ground.Judgement{Verdict: assay.Unsupported, Reason: fmt.Sprintf("the quoted words %q are not in the cited passages", shorten(visible.Line(wrong), 100))}
	case len(j.Spans) == 0:
		return ground.Judgement{Verdict: assay.Unsupported, Reason: "the verifier quoted no supporting words"}
	}
	return j
}

// spansOf finds quotes in the passages cited, first in the words cited themselves. wrong is the
// first quote that is in none. Quotes without information are skipped.
func spansOf(quotes []string, cited []ground.Passage) (spans []ground.Span, wrong string) {
	for _, q := range quotes {
		q = strings.Trim(q, " \t\r\n\"'…“”„«»")
		if !tells(q) {
			continue
		}
		if sp, ok := standsIn(q, cited); ok {
			spans = append(spans, sp)
		} else if !slices.ContainsFunc(cited, func(p ground.Passage) bool { return strings.Contains(line(strings.Join(p.Heading, " › ")), q) }) {
			wrong = cmp.Or(wrong, q) // unless it is a heading, which the prompt also shows
		}
	}
	return spans, wrong
}

// tells reports whether a quote has a number, or more letters than an article.
func tells(quote string) bool {
	const least = 3
	letters := 0
	for _, r := range quote {
		if unicode.IsDigit(r) || unicode.Is(unicode.Han, r) {
			return true
		}
		if unicode.IsLetter(r) {
			letters++
		}
	}
	return letters >= least
}

// standsIn finds a quote in one of the passages.
func standsIn(quote string, cited []ground.Passage) (ground.Span, bool) {
	for i, p := range cited {
		from := strings.Index(p.Context, p.Quote)
		if start, end, ok := ground.Find(p.Quote, quote); ok && from >= 0 {
			return ground.Span{Passage: i, Start: from + start, End: from + end}, true
		}
	}
	for i, p := range cited {
		if start, end, ok := ground.Find(p.Context, quote); ok {
			return ground.Span{Passage: i, Start: start, End: end}, true
		}
	}
	return ground.Span{}, false
}

// shownAround is the number of bytes of a passage shown before and after the words cited.
const shownAround = 240

// around returns the text before and after the quote in its passage, or "" if there is none.
func around(p ground.Passage) string {
	at := strings.Index(p.Context, p.Quote)
	if at < 0 || p.Quote == "" {
		return ""
	}
	before, after := strings.TrimSpace(p.Context[:at]), strings.TrimSpace(p.Context[at+len(p.Quote):])
	if len(before) > shownAround {
		_, before, _ = strings.Cut(strings.ToValidUTF8(before[len(before)-shownAround:], ""), " ")
		before = "…" + before
	}
	after = shorten(after, shownAround)
	if before == "" && after == "" {
		return ""
	}
	return before + " (the words that are cited) " + after
}
