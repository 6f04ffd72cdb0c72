package local

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/layout"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// maxSaid bounds the sentences that analyst, summariser, comparer and extractor quote.
const maxSaid = 8

// A saying is a sentence of the evidence.
type saying struct {
	role.Statement
	hit assay.Hit
}

// sayings returns the sentences of evidence that answer a question, likeliest first and
// without duplicates. Without a question it returns the first sentence of each piece.
func sayings(ctx context.Context, reader llm.Reader, question string, evidence []assay.Evidence) ([]saying, error) {
	var p passages
	for _, ev := range evidence {
		p.add(ev.Hit, ev.Number)
	}
	spots := p.openings()
	if question != "" {
		readings, err := ReadHits(ctx, reader, question, p.hits)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if spots = p.byWords(read(question, nil)); err == nil && readings != nil {
			spots = p.byReading(readings)
		}
	}
	var out []saying
	for _, s := range spots {
		quotes := p.quotes(s)
		if s.score < alsoAnswers*spots[0].score || len(out) == maxSaid || len(quotes) == 0 {
			continue
		}
		text := p.layouts[s.passage].Shown(quotes[len(quotes)-1])
		if !slices.ContainsFunc(out, func(o saying) bool { return strings.EqualFold(o.Text, text) }) {
			out = append(out, saying{role.Statement{Text: text, Evidence: []int{p.numbers[s.passage]}}, p.hits[s.passage]})
		}
	}
	return out, nil
}

// openings returns the first sentence of each passage.
func (p passages) openings() []spot {
	var out []spot
	for i, l := range p.layouts {
		at := slices.IndexFunc(l.Blocks, func(b layout.Block) bool { return b.Kind != layout.Code && b.Kind != layout.Label })
		if at < 0 {
			continue
		}
		if spans := l.Sentences(l.Blocks[at]); len(spans) > 0 {
			out = append(out, spot{i, spans[0].Start, spans[0].End, 1})
		}
	}
	return out
}

// Summarise implements role.Summariser. It quotes the sentences of the evidence that answer the
// question best; without a question the first sentence of each piece. It returns an error only
// when ctx has ended.
func (s Actor) Summarise(ctx context.Context, _ role.Caller, in role.Reading) (role.Summary, error) {
	said, err := sayings(ctx, s.Reader, in.Question, in.Evidence)
	return role.Summary{Statements: statementsOf(said)}, err
}

func statementsOf(said []saying) []role.Statement {
	out := []role.Statement{}
	for _, s := range said {
		out = append(out, s.Statement)
	}
	return out
}

// Analyse implements role.Analyst. It sorts the sentences of the evidence that answer the
// question by the part of the question that they answer, or by their section if the question has
// only one part. A part without a likely answer is open. It returns an error only when ctx has
// ended.
func (a Judge) Analyse(ctx context.Context, c role.Caller, in role.Reading) (role.Analysis, error) {
	plan, err := Planner{}.Plan(ctx, c, in.Question)
	if err != nil {
		return role.Analysis{}, err
	}
	out := role.Analysis{Categories: []role.Category{}, Answered: []string{}, Open: []string{}}
	for _, part := range spelledOut(plan) {
		said, err := sayings(ctx, a.Reader, part, in.Evidence)
		if err != nil {
			return role.Analysis{}, err
		}
		var texts []string
		for _, s := range said {
			name := part
			if len(plan.SubQuestions) == 1 {
				name = cmp.Or(lastOf(s.hit.Chunk.Headings), s.hit.Title, s.hit.URI)
			}
			out.Categories = categorised(out.Categories, name, s.Statement)
			texts = append(texts, s.hit.Under()+": "+s.Text)
		}
		share, err := answered(ctx, a.Reader, part, strings.Join(texts, " "))
		if ctx.Err() != nil {
			return role.Analysis{}, ctx.Err()
		}
		if err != nil {
			out.Notes = append(out.Notes, "analyst: "+err.Error()+"; sentences were judged by word overlap only")
		}
		if len(said) > 0 && share >= minAnswered {
			out.Answered = append(out.Answered, part)
		} else {
			out.Open = append(out.Open, part)
		}
	}
	return out, nil
}

func lastOf(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

// categorised adds a statement to the category of a name.
func categorised(categories []role.Category, name string, st role.Statement) []role.Category {
	at := slices.IndexFunc(categories, func(k role.Category) bool { return k.Name == name })
	if at < 0 {
		at = len(categories)
		categories = append(categories, role.Category{Name: name})
	}
	categories[at].Statements = append(categories[at].Statements, st)
	return categories
}

// maxPoints bounds a comparison.
const maxPoints = 8

// Compare implements role.Comparer. It compares sentences of different documents that answer the
// question and share words. They agree if the reader finds that each supports the other, and
// conflict if one contradicts the other. Without a reader they differ, unless they are equal. It
// returns an error only when ctx has ended.
func (c Actor) Compare(ctx context.Context, _ role.Caller, in role.Reading) (role.Contrast, error) {
	out := role.Contrast{Points: []role.Point{}}
	said, err := sayings(ctx, c.Reader, in.Question, in.Evidence)
	if err != nil {
		return out, err
	}
	used := map[int]bool{}
	for i, a := range said {
		for j := i + 1; j < len(said) && !used[i]; j++ {
			b := said[j]
			aspect := shared(a.Text, b.Text)
			sameDocument := a.hit.Chunk.Document == b.hit.Chunk.Document
			if used[j] || sameDocument || len(aspect) < 2 || len(out.Points) == maxPoints {
				continue
			}
			relation, err := c.relation(ctx, a, b)
			if ctx.Err() != nil {
				return role.Contrast{}, ctx.Err()
			}
			if err != nil {
				out.Notes = append(out.Notes, "comparer: "+err.Error())
			}
			used[i], used[j] = true, true
			out.Points = append(out.Points, role.Point{Aspect: strings.Join(aspect, " "), Sides: []role.Statement{a.Statement, b.Statement}, Relation: relation})
		}
	}
	conflicts, others := []role.Point{}, []role.Point{}
	for _, p := range out.Points {
		if p.Relation == role.Conflict {
			conflicts = append(conflicts, p)
		} else {
			others = append(others, p)
		}
	}
	out.Points = append(conflicts, others...)
	return out, nil
}

// shared returns the content words that one text has in common with another, at most five.
func shared(one, other string) []string {
	held := stems("", other)
	words := slices.DeleteFunc(contentWords(one), func(w string) bool { return !within(held, stems("", w)) })
	return words[:min(5, len(words))]
}

// relation returns the relation between two sentences.
func (c Actor) relation(ctx context.Context, a, b saying) (role.Relation, error) {
	if strings.EqualFold(a.Text, b.Text) {
		return role.Agree, nil
	}
	if c.Reader == nil {
		return role.Differ, nil
	}
	both, err := c.Reader.Entail(ctx, []llm.ClaimPair{
		{Claim: a.Text, Passage: llm.Excerpt{Heading: b.hit.Under(), Text: b.Text}},
		{Claim: b.Text, Passage: llm.Excerpt{Heading: a.hit.Under(), Text: a.Text}},
	})
	switch {
	case err != nil || len(both) != 2:
		return role.Differ, err
	case max(both[0].Contradicted, both[1].Contradicted) >= likely:
		return role.Conflict, nil
	case min(both[0].Supported, both[1].Supported) >= likely:
		return role.Agree, nil
	}
	return role.Differ, nil
}

// The bounds of an extraction.
const (
	maxEntities   = 60
	maxEntityName = 120 // bytes
)

// counted matches a number with a unit or the word that it counts.
var counted = lazyregexp.New(`\b\d[\d.,]*(?: ?%|[ -]\pL{2,20}\b)`)

// Extract implements role.Extractor. It lists names, identifiers, and numbers with the word
// after them, all by their form, as far as an entity of the type can have that form. Its facts
// are the sentences that answer the question, or the first sentence of each piece if there is no
// question. It returns an error only when ctx has ended.
func (e Actor) Extract(ctx context.Context, _ role.Caller, in role.ExtractInput) (role.Extraction, error) {
	said, err := sayings(ctx, e.Reader, in.Question, in.Evidence)
	if err != nil {
		return role.Extraction{}, err
	}
	out := role.Extraction{Entities: []role.Entity{}, Facts: statementsOf(said)}
	add := func(name, kind string, number int) {
		name = strings.Trim(oneLine(name), " .,;:!?()[]\"'“”‘’`")
		at := slices.IndexFunc(out.Entities, func(o role.Entity) bool { return strings.EqualFold(o.Name, name) })
		fits := name != "" && len(name) <= maxEntityName && len(out.Entities) < maxEntities
		if at < 0 && fits {
			at = len(out.Entities)
			out.Entities = append(out.Entities, role.Entity{Name: name, Kind: kind})
		}
		if at >= 0 && !slices.Contains(out.Entities[at].Evidence, number) {
			out.Entities[at].Evidence = append(out.Entities[at].Evidence, number)
		}
	}
	names, identifiers, numbers := formsOf(in.EntityType)
	for _, ev := range in.Evidence {
		for _, name := range lexical.Names(ev.Hit.Text) {
			kind := kindOfName(name)
			if kind == role.Identifier && identifiers || kind != role.Identifier && names {
				add(name, kind, ev.Number)
			}
		}
		for _, number := range counted.FindAllString(ev.Hit.Text, -1) {
			if numbers {
				add(number, "number", ev.Number)
			}
		}
	}
	for i := range out.Entities {
		slices.Sort(out.Entities[i].Evidence)
	}
	// Names that most pieces have come first.
	slices.SortStableFunc(out.Entities, func(a, b role.Entity) int { return cmp.Compare(len(b.Evidence), len(a.Evidence)) })
	return out, nil
}

// formsOf returns the forms that entities of a type can have. A name does not show whether it is of
// a person or a place. Any form can be of a type in other words.
func formsOf(entityType string) (names, identifiers, numbers bool) {
	switch entityType {
	case role.Person, role.Organisation, role.Place:
		return true, false, false
	case role.Product:
		return true, true, false
	case role.Identifier:
		return false, true, false
	case role.Date, role.Amount:
		return false, false, true
	}
	return true, true, true
}

// kindOfName returns the kind of a name by its form: an identifier has a capital, a digit or a
// mark inside.
func kindOfName(name string) string {
	inside := func(r rune) bool { return unicode.IsUpper(r) || unicode.IsDigit(r) || strings.ContainsRune("_./", r) }
	if !strings.Contains(name, " ") && strings.ContainsFunc(name[1:], inside) {
		return role.Identifier
	}
	return "name"
}
