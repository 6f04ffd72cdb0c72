package prompted

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// Verifier judges claims against what they cite, several at a time. It fails
// closed: a claim that the model does not judge, or judges twice, is Unsupported,
// and so are all when the provider fails. It has no domain: how claims are checked
// is nobody's to change.
//
// A number of a claim that is not in the words that it cites, a name that is not in
// their passage either, or hardly any word that is, makes it Unsupported, and the same
// words with the opposite sense Contradicted, whatever the model says: it may have been
// talked into its verdict by the very words that it reads.
type Verifier struct {
	Config // Domain is not used
}

// maxBatch is how many claims one call judges, and verdictTokens how many tokens
// a verdict may have.
const (
	maxBatch      = 8
	verdictTokens = 180
)

// verdictsReply is what the model is asked for.
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
	var open []int // claims that somebody has to read
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

// batch has as many of the open claims judged as fit into one prompt, and returns
// how many those are, at least one. When the provider fails that settles all.
func (v Verifier) batch(ctx context.Context, c role.Caller, claims []role.Claim, open []int, out []ground.Judgement) (int, error) {
	v.Domain = nil
	which, shown := open[:min(maxBatch, len(open))], 0
	if w := llm.FactsOf(v.Model).Window; w > 0 { // a verdict has its tokens also in a small one
		which = which[:max(1, min(len(which), w/4/verdictTokens))]
	}
	j := job[verdictsReply]{
		Config: v.Config, role: role.VerifierRole, out: verdictsOutput(), maxTokens: verdictTokens * (len(which) + 1),
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
		outcome, err = without(j.role, err), nil
		which, shown = open, len(open)
	}
	if err != nil {
		return 0, err
	}
	said, cited := saidAndCited(claims)
	nouned, language := nounsCapitalised(said, cited), tongue(said)
	if shown == 0 { // a claim that is too long for the model: the others may not be
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
		out[i] = guarded(ctx, decided(j, quotes, claims[i]), claims[i], nouned, language)
	}
	return shown, nil
}

// A labelled text is data with the name that it has in a prompt.
type labelled struct {
	Name, Text string
}

// A claimData is a claim as the template shows it.
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
			d.Sources = append(d.Sources, labelled{name, strings.Join(p.Heading, " › ") + "\n" + p.Quote})
			if near := around(p); near != "" {
				d.Sources = append(d.Sources, labelled{"around", near})
			}
		}
		out = append(out, d)
	}
	return out
}

// checkVerdicts says what of the verdicts is wrong.
func checkVerdicts(r *verdictsReply, claims int) []string {
	var problems []string
	judged := map[int]int{}
	for _, v := range r.Verdicts {
		judged[v.Claim]++
		if v.Claim < 1 || v.Claim > claims {
			problems = append(problems, fmt.Sprintf("there is no claim %d; there are %d", v.Claim, claims))
		}
		if v.Score < 0 || v.Score > 1 {
			problems = append(problems, fmt.Sprintf("the score of claim %d is %v, not between 0 and 1", v.Claim, v.Score))
		}
	}
	for n := 1; n <= claims; n++ {
		if judged[n] != 1 {
			problems = append(problems, fmt.Sprintf("claim %d has %d verdicts, and exactly one is wanted", n, judged[n]))
		}
	}
	return problems
}

// judgementOf returns what the model says of a claim. What is not exactly one
// verdict that can be read is Unsupported.
func judgementOf(r verdictsReply, number int) (j ground.Judgement, quotes []string) {
	none := ground.Judgement{Verdict: assay.Unsupported, Reason: "the verifier gave no verdict on it", Failed: true}
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

// checkQuotes says which quotes of the verdicts are no words of what the claims cite.
func checkQuotes(r *verdictsReply, claims []role.Claim, which []int) []string {
	var problems []string
	for _, v := range r.Verdicts {
		if v.Claim < 1 || v.Claim > len(which) {
			continue
		}
		if _, wrong := spansOf(v.Quotes, claims[which[v.Claim-1]].Cited); wrong != "" {
			problems = append(problems, fmt.Sprintf("the quote %q of claim %d does not stand in its sources; copy their words", shorten(line(wrong), 100), v.Claim))
		}
	}
	return problems
}

// decided is j with the words that decide it. A model that makes its evidence up has not
// found any: what it supports with a quote that no source has is not supported.
func decided(j ground.Judgement, quotes []string, claim role.Claim) ground.Judgement {
	var wrong string
	if j.Spans, wrong = spansOf(quotes, claim.Cited); wrong != "" && j.Verdict == assay.Supported {
		return ground.Judgement{Verdict: assay.Unsupported, Reason: fmt.Sprintf("the words %q, which are to decide it, are not in what it cites", shorten(visible.Line(wrong), 100))}
	}
	return j
}

// spansOf finds quotes in the passages that are cited, in the words that are cited first.
// Wrong is the first that is not there; one that tells nothing counts for nothing.
func spansOf(quotes []string, cited []ground.Passage) (spans []ground.Span, wrong string) {
	for _, q := range quotes {
		q = strings.Trim(q, " \t\r\n\"'…“”„«»")
		if !tells(q) {
			continue
		}
		if sp, ok := standsIn(q, cited); ok {
			spans = append(spans, sp)
		} else if !slices.ContainsFunc(cited, func(p ground.Passage) bool { return strings.Contains(line(strings.Join(p.Heading, " › ")), q) }) {
			wrong = cmp.Or(wrong, q) // and not a heading, which is shown as well
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

// shownAround is how much, in bytes, is shown of a passage before and after the
// words that are cited.
const shownAround = 240

// around returns what stands before and after a quote in its passage; "" when
// nothing does.
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

// saidAndCited is what all claims say, and what they cite.
func saidAndCited(claims []role.Claim) (said, cited string) {
	var texts, quotes []string
	for _, c := range claims {
		texts = append(texts, c.Text)
		for _, p := range c.Cited {
			quotes = append(quotes, p.Quote)
		}
	}
	return strings.Join(texts, " "), strings.Join(quotes, "\n")
}

// guarded takes back a verdict of supported where the surface of the words says
// otherwise: a model can be talked into a verdict, a number cannot. Between two
// languages names differ and numbers are pointed differently: their digits are
// compared there, and names not at all. Language is that of all claims together, for
// those that are too short to tell.
func guarded(ctx context.Context, j ground.Judgement, claim role.Claim, nouned bool, language string) ground.Judgement {
	if j.Verdict != assay.Supported {
		return j
	}
	words := checkedWords(claim)
	var cited, near strings.Builder
	for _, p := range claim.Cited {
		cited.WriteString(p.Quote + "\n" + strings.Join(p.Heading, "\n") + "\n")
		near.WriteString(p.Context + "\n")
	}
	translated := translates(claim, words)
	numbers := surface.Numbers
	if translated {
		numbers = pointless
	}
	held := map[string]bool{}
	for _, n := range slices.Concat(surface.Numbers(cited.String()), numbers(cited.String())) {
		held[n] = true
	}
	for _, n := range numbers(words) {
		if !held[n] {
			return ground.Judgement{Verdict: assay.Unsupported, Reason: "the number " + n + " is not in what it cites"}
		}
	}
	if translated {
		return j
	}
	whole := visible.Line(cited.String() + near.String())
	var units []string // which sources may write out, or not
	for _, m := range unit.FindAllStringSubmatch(words, -1) {
		units = append(units, m[1])
	}
	for _, name := range surface.Names(words) {
		name = possessive.ReplaceAllString(visible.Line(name), "")
		if nouned && plainWord(name) || slices.Contains(units, name) {
			continue
		}
		if _, _, ok := wordAt(whole, name); !ok {
			return unnamed(name)
		}
	}
	if nouned {
		if names := strangers(words, newNouns(whole)); len(names) > 0 {
			return unnamed(names[0])
		}
	}
	if said := cmp.Or(tongue(words), language); stemmed[said] && !verbatim(whole, visible.Line(words)) {
		least := minHeld
		if len(j.Spans) == 0 {
			least = minHeldUnquoted
		}
		if heldShare(words, whole, said) < least {
			return ground.Judgement{Verdict: assay.Unsupported, Reason: "hardly a word of it is in what it cites"}
		}
		if turned(ctx, words, claim.Cited, said) {
			return ground.Judgement{Verdict: assay.Contradicted, Reason: "what it cites says the opposite in the same words"}
		}
	}
	return j
}

// stemmed are the languages in which two texts that say the same share words by their
// stems: those of many endings, or without blanks, are not among them.
var stemmed = map[string]bool{"en": true, "de": true, "fr": true, "es": true, "it": true, "pt": true, "nl": true, "sv": true, "da": true, "no": true, "nb": true}

// minHeld is the share of a claim's words of content that what it cites, with its
// passage, has at least. Other words can say the same, but not all of them are others.
// Of a language whose forms of words are not known, and between two, it says nothing.
//
// Measured: of the supported claims of WiCE (development) and of SummEdits none falls
// below, of SciFact's (training) 2.7%, and 32% of those that nothing is said of.
const minHeld = 0.3

// minHeldUnquoted is that of a claim for which the model quotes nothing, though it is
// asked to: then most of the claim has to be there.
const minHeldUnquoted = 0.6

// heldShare is the share of the words of content of a text that source has, in any form
// that their language knows.
func heldShare(text, source, language string) float64 {
	words, held := content(text, language), map[string]bool{}
	for _, w := range content(source, language) {
		held[w] = true
	}
	if len(words) == 0 {
		return 1
	}
	n := 0
	for _, w := range words {
		if held[w] {
			n++
		}
	}
	return float64(n) / float64(len(words))
}

func content(text, language string) []string {
	if language == "en" {
		return surface.Content(text)
	}
	var stems []string
	for _, t := range analysis.Tokens(text, language) {
		if !t.Part {
			stems = append(stems, t.Term)
		}
	}
	return stems
}

// turned reports whether the cited sentences that have nearly all of a claim's words say
// the opposite of it, as far as that is plain: one negates, and the other does not.
//
// Measured: so are none of the supported claims of SciFact (training) and SummEdits, and
// one of 115 of WiCE (development).
func turned(ctx context.Context, words string, cited []ground.Passage, language string) bool {
	const same = 0.8
	opposed := false
	for _, p := range cited {
		for _, sp := range sentence.Spans(p.Quote) {
			said := p.Quote[sp.Start:sp.End]
			if heldShare(words, said, language) < same || heldShare(said, words, language) < same {
				continue
			}
			j, err := ground.Local{}.Verify(ctx, words, []ground.Passage{{Quote: said, Context: said, Heading: p.Heading}})
			if err != nil || j.Verdict != assay.Contradicted {
				return false
			}
			opposed = true
		}
	}
	return opposed
}

// translates reports whether a claim is plainly of another language than each of the
// passages that it cites. They are looked at one by one: what many of them say together,
// with their headings, can look like a language that nobody wrote it in.
func translates(claim role.Claim, words string) bool {
	said := tongue(words)
	return !slices.ContainsFunc(claim.Cited, func(p ground.Passage) bool {
		return !foreign(cmp.Or(tongue(p.Quote), tongue(p.Context)), said)
	})
}

func unnamed(name string) ground.Judgement {
	return ground.Judgement{Verdict: assay.Unsupported, Reason: fmt.Sprintf("the name %q is not in what it cites", name)}
}

// unit matches what stands right behind a number: "140 EUR".
var unit = regexp.MustCompile(`\d ?(\p{L}{1,4})\b`)

// checkedWords are those of a claim that its sources have to have: of a table's row
// all but the heads of its columns, which are labels.
func checkedWords(claim role.Claim) string {
	if claim.Row == nil {
		return claim.Text
	}
	return claim.Row.Sentence + "\n\n" + strings.Join(claim.Row.Cells, "; ")
}

// pointless returns the numbers of a text that are written in digits, without the
// points, commas and marks that languages put into them.
func pointless(text string) []string {
	var out []string
	for _, w := range digits(text) {
		out = append(out, strings.Map(func(r rune) rune {
			if strings.ContainsRune(".,'’", r) {
				return -1
			}
			return r
		}, w))
	}
	return out
}
