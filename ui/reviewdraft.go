package ui

import (
	"cmp"
	"net/url"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
)

// A shownDraft is an answer with its evidence, cut into pieces of text.
type shownDraft struct {
	assay.Answer
	Hash     string // of the text
	Pieces   []draftPiece
	Shown    []draftClaim
	Evidence []shownEvidence
	Lacking  int // claims that the documents do not support
}

// A draftPiece is a part of the text that belongs to one claim, or to none.
type draftPiece struct {
	Text  string
	Claim *draftClaim
}

// A draftClaim is a claim with its sources.
type draftClaim struct {
	assay.Claim
	Number  int // from 1
	Text    string
	Verdict statusWords
	Sources []shownQuote
}

// A shownQuote is a quote in its passage.
type shownQuote struct {
	assay.Citation
	Before, Mark, After string
	Under, Link         string
}

// A shownEvidence is a passage that an edit can cite.
type shownEvidence struct {
	Number      int
	Under, Text string
	Link        string
	Version     string
	Cited       bool
}

// verdictWords are the words for the verifier's judgements.
var verdictWords = map[assay.Verdict]statusWords{
	assay.Supported:    {"good", "check", "Supported", "The cited words support it."},
	assay.Contradicted: {"bad", "cross", "Contradicted", "The cited words contradict it."},
	assay.Unsupported:  {"warn", "question", "Not supported", "The documents do not support it."},
}

// statement is how a claim of a reviewer is shown that the documents do not support.
var statement = statusWords{"warn", "person", "Reviewer's statement", "The documents do not support it. The answer says who states it."}

func newShownDraft(a assay.Answer, evidence []assay.Evidence) shownDraft {
	d := shownDraft{Answer: a, Hash: hashText(a.Text)}
	for i, c := range a.Claims {
		s := draftClaim{Claim: c, Number: i + 1, Verdict: verdictWords[c.Verdict]}
		if c.Reviewer != "" {
			s.Verdict = statement
		}
		if s.Verdict.Word == "" {
			s.Verdict = verdictWords[assay.Unsupported]
		}
		if c.Reviewer != "" || c.Verdict != assay.Supported {
			d.Lacking++
		}
		if isTextSpan(a.Text, c.Start, c.End) {
			s.Text = a.Text[c.Start:c.End]
		}
		for _, q := range a.Citations {
			if q.Claim == i {
				s.Sources = append(s.Sources, newShownQuote(q, evidence))
			}
		}
		d.Shown = append(d.Shown, s)
	}
	d.Pieces = draftPieces(a.Text, d.Shown)
	for _, ev := range evidence {
		if ev.Hit.Text == "" {
			continue
		}
		cited := func(c assay.Citation) bool { return c.Number == ev.Number }
		d.Evidence = append(d.Evidence, shownEvidence{
			Number: ev.Number, Under: cmp.Or(ev.Hit.Under(), ev.Hit.URI), Text: unwrapped(ev.Hit.Text), Version: ev.Hit.Chunk.Version,
			Link: documentLink(ev.Hit.Origin, ev.Hit.Chunk.Document), Cited: slices.ContainsFunc(a.Citations, cited),
		})
	}
	return d
}

// draftPieces cuts a text at its claims. A claim that overlaps the one before is not underlined.
func draftPieces(text string, claims []draftClaim) []draftPiece {
	order := make([]*draftClaim, 0, len(claims))
	for i := range claims {
		if c := &claims[i]; c.Text != "" {
			order = append(order, c)
		}
	}
	slices.SortStableFunc(order, func(a, b *draftClaim) int { return cmp.Compare(a.Start, b.Start) })
	var all []draftPiece
	at := 0
	for _, c := range order {
		if c.Start < at {
			continue
		}
		if c.Start > at {
			all = append(all, draftPiece{Text: text[at:c.Start]})
		}
		all = append(all, draftPiece{Text: c.Text, Claim: c})
		at = c.End
	}
	if at < len(text) {
		all = append(all, draftPiece{Text: text[at:]})
	}
	return all
}

// quoteContext is the most bytes of a passage that are shown on each side of a quote.
const quoteContext = 320

// newShownQuote puts a quote into its passage, if the passage has it at the place of the citation.
func newShownQuote(c assay.Citation, evidence []assay.Evidence) shownQuote {
	q := shownQuote{Citation: c, Mark: unwrapped(c.Quote), Link: documentLink(c.Origin, c.Document)}
	hit := assay.Hit{Title: cmp.Or(c.Title, c.URI), Chunk: assay.Chunk{Headings: c.Heading}}
	q.Under = hit.Under()
	i := slices.IndexFunc(evidence, func(e assay.Evidence) bool { return e.Number == c.Number })
	if i < 0 {
		return q
	}
	passage, chunk := evidence[i].Hit.Text, evidence[i].Hit.Chunk
	start, end := c.Start-chunk.Start, c.End-chunk.Start
	if chunk.Document != c.Document || chunk.Version != c.Version || !isTextSpan(passage, start, end) || passage[start:end] != c.Quote {
		return q
	}
	passage = unwrapped(passage)
	q.Before, q.Mark, q.After = tail(passage[:start], quoteContext), passage[start:end], head(passage[end:], quoteContext)
	return q
}

// wrapped matches the end of a long line that goes on in the next one: what follows is no list, table or
// heading.
var wrapped = lazyregexp.New(`([^\n]{50})\n([\p{L}\p{M}("'„“«])`)

// unwrapped joins the lines of paragraphs. The offsets of the text stay.
func unwrapped(text string) string { return wrapped.ReplaceAllString(text, "$1 $2") }

// documentLink returns the path of a stored document; empty: there is none.
func documentLink(origin assay.Origin, id string) string {
	if origin != assay.FromDocuments || id == "" {
		return ""
	}
	return "/documents/" + url.PathEscape(id)
}
