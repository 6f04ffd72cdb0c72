package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/role"
)

// MaxObservation is the maximum size of an observation, in bytes.
const MaxObservation = 8000

// Limits of the parts of an observation, in bytes.
const (
	maxShown  = 1600 // of a passage of a search
	minShown  = 120
	maxPhrase = 300
	maxHead   = 1200 // of what stands beside the text of a page, at most

	mostListed = 100 // entries of a list
)

// An Observation is the outcome of a call as shown to the agent: a JSON object of at most
// MaxObservation bytes. It reports omitted parts.
type Observation struct {
	Text   string
	Failed bool        // the call gave no results; the text has the reason
	Hits   []assay.Hit // the hits found, including those seen before
	Brief  string      // a short summary without document text
}

// Show numbers the results of a call and renders them.
func (s *Session) Show(c Call, out Output) Observation {
	switch {
	case out.Refused != "":
		return Refuse(out.Refused)
	case out.Results != nil && c.Tool == Graph:
		return s.showResults(*out.Results, "the graph leads from these names to no passage: search for them, or spell them as the documents do")
	case out.Results != nil:
		return s.showResults(*out.Results, "nothing was found: try other words")
	case out.Page != nil:
		return s.showPage(*out.Page)
	case out.Summary != nil:
		return s.showStatements(out.Summary.Statements, out.Summary.Outcome)
	case out.Contrast != nil:
		return s.showContrast(*out.Contrast)
	case out.Extraction != nil:
		return s.showExtraction(*out.Extraction)
	}
	return Refuse(c.Tool + " brought nothing")
}

// Refuse returns the observation of a call that was not made or gave no results.
func Refuse(why string) Observation {
	why = brief(why, 2000)
	return Observation{Text: written(struct {
		Error string `json:"error"`
	}{why}), Failed: true, Brief: brief(why, 120)}
}

// written returns v as JSON.
func written(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // observations are not shown in HTML
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("tool: an observation has no JSON: %v", err)) // structs of strings and numbers always do
	}
	return string(bytes.TrimSpace(b.Bytes()))
}

type shownResult struct {
	Chunk     int      `json:"chunk"`
	ID        string   `json:"id"` // of its document
	URI       string   `json:"uri"`
	Title     string   `json:"title,omitempty"`
	Headings  []string `json:"headings,omitempty"`
	Relevance float64  `json:"relevance"`
	Obtained  string   `json:"obtained,omitempty"` // how, if the document does not contain the text
	Page      int      `json:"page"`               // of get_document
	Text      string   `json:"text"`
	Cut       string   `json:"cut,omitempty"`
}

type shownResults struct {
	Results []shownResult `json:"results"`
	Left    int           `json:"left_out,omitempty"` // results omitted for lack of room
	Note    string        `json:"note,omitempty"`
}

// showResults renders results. The note is shown if there are none.
func (s *Session) showResults(found assay.Results, none string) Observation {
	var numbers []int
	for _, h := range found.Hits {
		numbers = append(numbers, s.number(h))
	}
	handles := make([]string, len(found.Hits))
	for i, h := range found.Hits {
		handles[i] = s.handle(h)
	}
	obs := Observation{Hits: found.Hits, Brief: "nothing was found"}
	if len(numbers) > 0 {
		obs.Brief = fmt.Sprintf("chunks %s", runs(numbers))
	}
	shown, room := len(found.Hits), maxShown
	for {
		out := shownResults{Results: []shownResult{}, Left: len(found.Hits) - shown}
		if len(found.Hits) == 0 {
			out.Note = none
		}
		for i, h := range found.Hits[:shown] {
			out.Results = append(out.Results, resultOf(h, numbers[i], handles[i], room))
		}
		obs.Text = written(out)
		switch {
		case len(obs.Text) <= MaxObservation:
			return obs
		case room > minShown:
			room = max(minShown, room*3/4)
		default:
			shown--
		}
	}
}

// resultOf renders a hit with up to room bytes of its text.
func resultOf(h assay.Hit, number int, handle string, room int) shownResult {
	out := shownResult{
		Chunk: number, ID: handle, URI: brief(h.URI, maxPhrase), Title: brief(h.Title, 120),
		Relevance: math.Round(h.Scores.Relevance*100) / 100, Page: PageOn(h.Chunk.Start),
		Obtained: brief(h.Chunk.Provenance.Label(h.Chunk.Confidence, h.Chunk.Model), 120),
	}
	for _, heading := range h.Chunk.Headings[max(0, len(h.Chunk.Headings)-3):] {
		out.Headings = append(out.Headings, brief(heading, 120))
	}
	text := upTo(h.Text, room)
	out.Text = visible.Text(text)
	if len(text) < len(h.Text) {
		out.Cut = fmt.Sprintf("%d of %d bytes are shown; page %d of %s goes on", len(text), len(h.Text), PageOn(h.Chunk.Start+len(text)), handle)
	}
	return out
}

// upTo returns the longest prefix of text of whole characters with at most n bytes.
func upTo(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && text[n]&0xC0 == 0x80 {
		n--
	}
	return text[:n]
}

type shownPage struct {
	Chunk int    `json:"chunk"`
	ID    string `json:"id"`
	URI   string `json:"uri"`
	Title string `json:"title,omitempty"`
	Page  int    `json:"page,omitempty"` // not set for a whole document
	Pages int    `json:"pages,omitempty"`
	Total int    `json:"total"` // bytes of the document
	Text  string `json:"text"`
	Cut   string `json:"cut,omitempty"`

	// Foreign are the beginnings of passages that the document does not contain as text, with how
	// they were obtained.
	Foreign []string `json:"not_in_document,omitempty"`
}

// showPage renders a page. Text that does not fit is neither shown nor used as evidence.
func (s *Session) showPage(p Page) Observation {
	handle := s.handle(p.Hit(0))
	if p.Start >= p.Total {
		return Refuse(fmt.Sprintf("the document has %d pages, and no page %d", p.Pages, p.Of))
	}
	for whole := len(p.Text); ; {
		h := p.Hit(s.relevanceOf(p))
		shown := shownPage{Chunk: s.nextNumber(h), ID: handle, URI: brief(p.URI, maxPhrase), Title: brief(p.Title, 120), Total: p.Total, Text: visible.Text(p.Text)}
		shown.Foreign = p.foreign()
		what := "whole"
		if p.Of > 0 {
			shown.Page, shown.Pages = p.Of, p.Pages
			what = fmt.Sprintf("page %d of %d", p.Of, p.Pages)
		}
		if len(p.Text) < whole {
			shown.Cut = fmt.Sprintf("%d of %d bytes are shown", len(p.Text), whole)
		}
		text := written(shown)
		if len(text) <= MaxObservation {
			return Observation{Text: text, Hits: []assay.Hit{h}, Brief: fmt.Sprintf("chunk %d, %s", s.number(h), what)}
		}
		p.Text = upTo(p.Text, len(p.Text)*3/4)
		p.End = p.Start + len(p.Text)
	}
}

// foreign lists the marked parts of a page, a few of them.
func (p Page) foreign() []string {
	const most, room = 6, 60
	var list []string
	for i, m := range p.Marks {
		if i == most {
			return append(list, fmt.Sprintf("and %d more", len(p.Marks)-most))
		}
		if m.Start >= len(p.Text) {
			break
		}
		text := p.Text[m.Start:min(m.End, len(p.Text))]
		list = append(list, brief(m.Kind.Label(m.Confidence, m.Model), 80)+": "+brief(text, room))
	}
	return list
}

// nextNumber returns the number that number would return, without assigning it.
func (s *Session) nextNumber(h assay.Hit) int {
	for i, o := range s.results {
		if o.Chunk.ID == h.Chunk.ID {
			return i + 1
		}
	}
	return len(s.results) + 1
}

type shownStatement struct {
	Text   string `json:"text"`
	Chunks []int  `json:"chunks"`
}

// statements renders a role's statements. It drops those without an existing chunk.
func (s *Session) statements(from []role.Statement) []shownStatement {
	out := []shownStatement{}
	for _, st := range from {
		numbers := s.knownNumbers(st.Evidence)
		if text := brief(st.Text, 3*maxPhrase); text != "" && len(numbers) > 0 {
			out = append(out, shownStatement{text, numbers})
		}
	}
	return out
}

// knownNumbers returns the numbers that belong to chunks, ascending and without duplicates.
func (s *Session) knownNumbers(numbers []int) []int {
	var out []int
	for _, n := range numbers {
		if n >= 1 && n <= len(s.results) && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

func (s *Session) showStatements(from []role.Statement, o role.Outcome) Observation {
	return fitted(s.statements(from), "statement", o, func(list []shownStatement, left int) any {
		return struct {
			Statements []shownStatement `json:"statements"`
			Left       int              `json:"left_out,omitempty"`
		}{list, left}
	})
}

type shownPoint struct {
	Aspect   string           `json:"aspect"`
	Relation role.Relation    `json:"relation"`
	Sides    []shownStatement `json:"sides"`
}

func (s *Session) showContrast(c role.Contrast) Observation {
	points := []shownPoint{}
	for _, p := range c.Points {
		if sides := s.statements(p.Sides); len(sides) > 1 {
			points = append(points, shownPoint{brief(p.Aspect, maxPhrase), p.Relation, sides})
		}
	}
	return fitted(points, "point", c.Outcome, func(list []shownPoint, left int) any {
		return struct {
			Points []shownPoint `json:"points"`
			Left   int          `json:"left_out,omitempty"`
		}{list, left}
	})
}

type shownEntity struct {
	Name   string `json:"name"`
	Kind   string `json:"kind,omitempty"`
	Chunks []int  `json:"chunks"`
}

func (s *Session) showExtraction(x role.Extraction) Observation {
	entities := []shownEntity{}
	for _, e := range x.Entities {
		if numbers, name := s.knownNumbers(e.Evidence), brief(e.Name, maxPhrase); name != "" && len(numbers) > 0 {
			entities = append(entities, shownEntity{name, brief(e.Kind, 60), numbers})
		}
	}
	facts := s.statements(x.Facts)
	const mostFacts = 8
	facts = facts[:min(len(facts), mostFacts)]
	if len(entities) == 0 && len(facts) > 0 {
		return s.showStatements(x.Facts, x.Outcome)
	}
	return fitted(entities, "entity", x.Outcome, func(list []shownEntity, left int) any {
		return struct {
			Entities []shownEntity    `json:"entities"`
			Facts    []shownStatement `json:"facts"`
			Left     int              `json:"left_out,omitempty"`
		}{list, facts, left}
	})
}

// fitted renders as many of the first entries of list as fit.
func fitted[T any](list []T, noun string, o role.Outcome, write func(list []T, left int) any) Observation {
	if len(list) == 0 {
		if o.Failure != "" {
			return Refuse("it could not be done: " + o.Failure)
		}
		nothing := "the chunks contain nothing of that kind"
		return Observation{Text: written(struct {
			Note string `json:"note"`
		}{nothing}), Brief: nothing}
	}
	n := min(len(list), mostListed)
	text := written(write(list[:n], len(list)-n))
	for len(text) > MaxObservation && n > 0 {
		n--
		text = written(write(list[:n], len(list)-n))
	}
	return Observation{Text: text, Brief: fmt.Sprintf("%d × %s", n, noun)}
}

// runs formats numbers with ranges: "1-5, 8".
func runs(numbers []int) string {
	numbers = slices.Clone(numbers)
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	text := ""
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		if text != "" {
			text += ", "
		}
		text += fmt.Sprint(numbers[i])
		if j > i {
			text += fmt.Sprintf("-%d", numbers[j])
		}
		i = j + 1
	}
	return text
}
