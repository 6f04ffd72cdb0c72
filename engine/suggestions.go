package engine

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/strategy"
)

// AskOptions are what a request can name in an engine.
type AskOptions struct {
	Strategies []StrategyOption `json:"strategies"` // the default first
	Web        bool             `json:"web"`        // a web search is configured
	SkipReview bool             `json:"skip_review"`
}

// A StrategyOption is a strategy that a request can name.
type StrategyOption struct {
	Name    string `json:"name"`
	Summary string `json:"summary"` // one line
}

// AskOptions returns what a request of the session can name. SkipReview says that it may ask for an
// answer without a review.
func (s *Session) AskOptions(ctx context.Context) (AskOptions, error) {
	return call(ctx, s, "AskOptions", func(c *sessionCall) (AskOptions, error) {
		return c.engine.askOptions(c.acting), nil
	})
}

// A Suggestion is something to ask: a heading of a document, word for word.
type Suggestion struct {
	Text       string `json:"text"`
	Document   string `json:"document"`
	Version    string `json:"version"`
	Start      int    `json:"start"` // of the heading's block in the document's text
	End        int    `json:"end"`
	Title      string `json:"title"`
	Collection string `json:"collection"`
}

// Suggestions returns at most n headings of documents that the session may see, of different documents
// where it can, and those that are questions first. If collections are named, only their documents
// count. It reads few documents, so others may have headings too.
func (s *Session) Suggestions(ctx context.Context, collections []string, n int) ([]Suggestion, error) {
	return call(ctx, s, "Suggestions", func(c *sessionCall) ([]Suggestion, error) {
		if err := c.checkNamed(ctx, collections); err != nil {
			return nil, err
		}
		return c.engine.suggestions(ctx, c.principal, collections, n)
	})
}

// Bounds of the work for suggestions.
const (
	maxSuggestDocuments = 24      // that are read
	maxSuggestListed    = 2000    // that are looked at
	maxSuggestBytes     = 1 << 20 // of a source that is read
	maxSuggestEach      = 4       // headings of one document
)

func (e *Engine) askOptions(p assay.Principal) AskOptions {
	o := AskOptions{Web: e.config.Web != nil, SkipReview: isPrivileged(p)}
	for _, s := range slices.Concat(strategy.Specs(), e.config.Strategies) {
		if s.Name == "managed" && e.config.Managed == nil {
			continue
		}
		o.Strategies = append(o.Strategies, StrategyOption{s.Name, s.Summary})
	}
	return o
}

// suggestions returns headings of documents that a principal may see.
func (e *Engine) suggestions(ctx context.Context, principal assay.Principal, collections []string, n int) ([]Suggestion, error) {
	key, err := json.Marshal([]any{principal.User, principal.Groups, principal.Collections, collections})
	if err != nil {
		return nil, err
	}
	sequence, err := e.content.Sequence(ctx)
	if err != nil {
		return nil, err
	}
	all, kept := e.suggested.get(sequence, string(key))
	if !kept {
		if all, err = e.headings(ctx, principal, collections); err != nil {
			return nil, err
		}
		e.suggested.put(sequence, string(key), all)
	}
	set, err := e.canaries(ctx)
	if err != nil {
		return nil, err
	}
	list := []Suggestion{}
	for _, s := range all {
		if len(list) >= n {
			break
		}
		if set.Empty() || len(set.Find(s.Text, s.Title)) == 0 {
			list = append(list, s)
		}
	}
	return list, nil
}

// headings returns the headings of some documents: of each one before the second of any, and questions
// before others.
func (e *Engine) headings(ctx context.Context, principal assay.Principal, collections []string) ([]Suggestion, error) {
	documents, err := e.documentsToSuggest(ctx, principal, collections)
	if err != nil {
		return nil, err
	}
	type ranked struct {
		Suggestion
		question bool
		place    int // among those of its document
	}
	var all []ranked
	seen := map[string]bool{}
	for _, d := range documents {
		d, err := e.content.Document(ctx, d.ID)
		if err != nil {
			return nil, err
		}
		if !principal.Access().Allows(d.Collection, d.ACL) { // it was closed meanwhile
			continue
		}
		place := 0
		for _, s := range headingsOf(d) {
			if word := strings.ToLower(s.Text); !seen[word] {
				seen[word] = true
				all = append(all, ranked{s, isQuestion(s.Text), place})
				place++
			}
		}
	}
	slices.SortStableFunc(all, func(a, b ranked) int {
		if a.question != b.question {
			if a.question {
				return -1
			}
			return 1
		}
		return a.place - b.place
	})
	list := make([]Suggestion, len(all))
	for i, s := range all {
		list[i] = s.Suggestion
	}
	return list, nil
}

// documentsToSuggest returns documents that a principal may see, spread over the list of all.
func (e *Engine) documentsToSuggest(ctx context.Context, principal assay.Principal, collections []string) ([]assay.Document, error) {
	var all []assay.Document
	for d, err := range e.Documents(ctx, principal, collections...) {
		if err != nil {
			return nil, err
		}
		if d.Source.SizeBytes <= maxSuggestBytes {
			all = append(all, d)
		}
		if len(all) == maxSuggestListed {
			break
		}
	}
	if len(all) <= maxSuggestDocuments {
		return all, nil
	}
	var some []assay.Document
	for i := range maxSuggestDocuments {
		some = append(some, all[i*len(all)/maxSuggestDocuments])
	}
	return some, nil
}

// headingsOf returns headings of a document that say what a reader could ask about. They are literally
// in its text, and no model's words. Questions come first.
func headingsOf(d assay.Document) []Suggestion {
	var questions, others []Suggestion
	for _, b := range d.Structure.Blocks {
		if b.Kind != assay.BlockHeading || b.Start < 0 || b.End > len(d.Text) || b.Start >= b.End {
			continue
		}
		text := strings.TrimSpace(b.Label)
		if !isAskable(text) || text == d.Title || !strings.Contains(d.Text[b.Start:b.End], text) || d.Structure.ProvenanceOf(b.Start, b.End).Kind != "" {
			continue
		}
		s := Suggestion{text, d.ID, d.Version, b.Start, b.End, d.Title, d.Collection}
		if isQuestion(text) {
			questions = append(questions, s)
		} else {
			others = append(others, s)
		}
	}
	all := append(questions, others...)
	return all[:min(len(all), maxSuggestEach)]
}

// numbered matches the number of a heading: "3.1", "§ 4", "Table 2".
var numbered = lazyregexp.New(`^(?:[§\dIVX.\s)]+$|(?i:table|figure|chapter|section|appendix|page|part)\b)`)

// isAskable reports whether a heading is long enough to be about something and short enough to be
// asked.
func isAskable(text string) bool {
	n := utf8.RuneCountInString(text)
	if n < 6 || n > 120 {
		return false
	}
	isLine := !strings.Contains(text, "\n")
	hasWords := strings.ContainsFunc(text, unicode.IsLetter) && !numbered.MatchString(text)
	return isLine && hasWords
}

// isQuestion reports whether a heading ends as a question does.
func isQuestion(text string) bool {
	c, _ := utf8.DecodeLastRuneInString(text)
	return strings.ContainsRune("?？؟", c)
}
