package strategy

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/run"
)

// A CheckedText is a text that a person wrote, checked like a draft.
type CheckedText struct {
	Text        string // with the citations that support each statement, and the author's own statements marked
	Claims      []assay.Claim
	Citations   []assay.Citation
	Unsupported int // claims that are the author's own
	Notes       []assay.Note
}

// CheckText verifies a text that author wrote in place of the answer before. Each statement is judged
// by the evidence that it cites as [n], or, if it cites none and before has the same statement, by the
// citations there. evidence[i] has the number i+1. A statement that is not supported stays in the text,
// marked as the author's, and has no citation. A text without a statement is assay.ErrInvalid.
func CheckText(ctx context.Context, s run.Scope, env Env, author, text string, evidence []assay.Evidence, before assay.Answer) (CheckedText, error) {
	env = env.withDefaults()
	text = strings.TrimSpace(visible.Text(text))
	passages, err := env.read(ctx, s, evidence)
	if err != nil {
		return CheckedText{}, err
	}
	bare, units := citedUnits(text, before)
	if len(units) == 0 {
		return CheckedText{}, fmt.Errorf("the text has no statement: %w", assay.ErrInvalid)
	}
	claims := make([]checkedClaim, len(units))
	for i, u := range units {
		claims[i] = cite(u, u.Text, evidence, passages)
		claims[i].statement = i
	}
	resolve(env.Question, claims)
	var notes noteList
	if err := env.judge(ctx, s, claims, evidence, passages, &notes); err != nil {
		return CheckedText{}, err
	}
	name := strings.NewReplacer("[", "(", "]", ")").Replace(visible.Line(author)) // no citation
	out := writeChecked(bare, name, claims)
	out.Notes = notes.list()
	return out, nil
}

// citationMark matches a citation number of an answer with the space before it. A number in brackets
// that belongs to a word, as in args[1], is none.
var citationMark = lazyregexp.New(` ?\B\[(\d{1,4})\]\B`)

// citedUnits returns a text without its citations, cut into statements. Each statement has the numbers of
// the citations in it and after it, up to the next statement.
func citedUnits(text string, before assay.Answer) (bare string, units []ground.Claim) {
	type mark struct{ at, number int } // at is a place in bare
	var marks []mark
	var b strings.Builder
	last := 0
	for _, m := range citationMark.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(text[last:m[0]])
		last = m[1]
		if n, err := strconv.Atoi(text[m[2]:m[3]]); err == nil {
			marks = append(marks, mark{b.Len(), n})
		}
	}
	b.WriteString(text[last:])
	bare = b.String()
	units = ground.Cut(bare, nil)
	for _, m := range marks {
		i := len(units) - 1
		for i >= 0 && units[i].Start >= m.at {
			i--
		}
		if i >= 0 && !slices.Contains(units[i].Evidence, m.number) {
			units[i].Evidence = append(units[i].Evidence, m.number)
		}
	}
	known := map[string][]int{}
	for _, c := range before.Claims {
		known[strings.TrimSpace(citationMark.ReplaceAllString(before.Text[c.Start:c.End], ""))] = c.Citations
	}
	for i, u := range units {
		if len(u.Evidence) == 0 {
			units[i].Evidence = known[strings.TrimSpace(u.Text)]
		}
	}
	return bare, units
}

// writeChecked writes a text, which has no citations, with those that support its statements.
func writeChecked(bare, author string, claims []checkedClaim) CheckedText {
	out := CheckedText{Claims: []assay.Claim{}, Citations: []assay.Citation{}}
	var b strings.Builder
	at := 0
	for i, c := range claims {
		b.WriteString(bare[at:c.Start])
		claim := assay.Claim{Start: b.Len(), Verdict: c.Verdict, Score: c.Score, Citations: []int{}}
		b.WriteString(bare[c.Start:c.End])
		claim.End, at = b.Len(), c.End
		if c.Verdict != assay.Supported {
			claim.Reviewer = author
			b.WriteString(" (statement of the reviewer " + author + ")")
			out.Claims, out.Unsupported = append(out.Claims, claim), out.Unsupported+1
			continue
		}
		for _, cit := range c.cited {
			cit.Claim = i
			out.Citations = append(out.Citations, cit)
			claim.Citations = append(claim.Citations, cit.Number)
		}
		slices.Sort(claim.Citations)
		claim.Citations = slices.Compact(claim.Citations)
		b.WriteByte(' ')
		for _, n := range claim.Citations {
			b.WriteString("[" + strconv.Itoa(n) + "]")
		}
		out.Claims = append(out.Claims, claim)
	}
	b.WriteString(bare[at:])
	out.Text = b.String()
	sortCitations(out.Citations)
	return out
}
