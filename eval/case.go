package eval

import (
	"time"

	"github.com/assay-rag/assay"
)

// A Case is a question of a set with what is known of its answer.
type Case struct {
	ID       string       `json:"id"`
	Question string       `json:"question"`
	History  []assay.Turn `json:"conversation,omitempty"` // before it, the oldest turn first
	Filter   assay.Filter `json:"filter,omitzero"`        // where it is asked
	Tenant   string       `json:"tenant,omitempty"`       // whose question it is

	Collections []string `json:"collections,omitempty"` // where it is asked; empty: everywhere

	Answers      []string `json:"answers,omitempty"` // any of them is right
	Gold         []Gold   `json:"gold,omitempty"`    // what an answer has to rest on: all of them where AllGold, else any
	AllGold      bool     `json:"all_gold,omitempty"`
	Unanswerable bool     `json:"unanswerable,omitempty"` // the documents do not answer it
	Conflicting  *bool    `json:"conflicting,omitempty"`  // the documents disagree about it; nil: the set does not say

	Slices map[string]string `json:"slices,omitempty"` // by what it is told apart: {"type": "number"}

	presumed bool // Unanswerable, for it is a golden question without sections
}

// Labelled reports whether anything is known of the answer: without that nobody can say
// whether one is right.
func (c Case) Labelled() bool {
	return c.Unanswerable || len(c.Answers) > 0 || len(c.Gold) > 0
}

// Gold is a place in the documents: a whole document, a span of it, or a section.
type Gold struct {
	Document string `json:"document"`          // its ID, its URI, or the end of that from a "/" on; empty: any that has the section
	Section  string `json:"section,omitempty"` // heading that it stands under
	Start    int    `json:"start,omitempty"`   // bytes of the document's text; with End 0: all of it
	End      int    `json:"end,omitempty"`
	Quote    string `json:"quote,omitempty"` // words that stand there; they find the place again when the document has changed
	Grade    int    `json:"grade,omitempty"` // of relevance, from 1; 0: 1
}

// A Stage is where a question was lost.
type Stage string

// The stages, in the order in which a question passes through them.
const (
	Mislabelled     Stage = "mislabelled"      // the set's mistake: what its gold quotes does not stand in the document
	NotIngested     Stage = "not_ingested"     // no stored document holds the gold
	NotRetrieved    Stage = "not_retrieved"    // no search brought it
	RankedTooLow    Stage = "ranked_too_low"   // a search brought it beneath what is read
	GradedAway      Stage = "graded_away"      // the grader took it for irrelevant, or the question for unanswerable
	NotCited        Stage = "not_cited"        // it was evidence, and nothing shown cites it
	VerifierWrong   Stage = "verifier_wrong"   // a right statement was refused, or a wrong one let through
	GeneratedWrong  Stage = "generated_wrong"  // it is cited, and the answer is wrong
	AnsweredWrongly Stage = "answered_wrongly" // the documents do not answer the question, and it was answered
	Broke           Stage = "broke"            // the run ended in an error
)

// An Outcome is what came of a case under one system. Outcomes are written to disk as
// they come, one JSON object a line, and are what everything else is computed from.
type Outcome struct {
	Case
	System string `json:"system"` // what answered: a strategy's name, or as the system was called

	Run       string       `json:"run,omitempty"`
	Error     string       `json:"error,omitempty"` // the run failed; there is no answer
	Answer    assay.Answer `json:"answer,omitzero"`
	Retrieved []string     `json:"retrieved,omitempty"` // of each hit of the run's searches the document, best first, each once; 100 at most
	Contexts  []Context    `json:"contexts,omitempty"`  // the evidence that the generator was handed, in order

	Mistake string             `json:"mistake,omitempty"` // of the set: gold that quotes what does not stand in its document
	Right   bool               `json:"right"`             // what it was asked for: answered from gold, or refused where unanswerable
	Lost    Stage              `json:"lost,omitempty"`    // where not Right
	Metrics map[string]float64 `json:"metrics,omitempty"` // by the measure's name; one that does not apply is not there
	Judges  map[string]string  `json:"judges,omitempty"`  // by the measure's name, who judged: "local", or a model
	Began   time.Time          `json:"began"`

	NotJudged map[string]string `json:"not_judged,omitempty"` // by the measure's name, or "claims": why there is none
	Judging   assay.Usage       `json:"judging,omitzero"`     // what judging it has spent
}

// A Context is a passage that the generator was handed, or that was found for a claim after
// it wrote.
type Context struct {
	Number   int    `json:"n"`
	Document string `json:"document"`
	URI      string `json:"uri"`
	Start    int    `json:"start"`
	End      int    `json:"end"`
	Text     string `json:"text"`
	Gold     bool   `json:"gold"` // holds gold, or overlaps it
	Cited    bool   `json:"cited"`
}

// A Report is what an evaluation of whole questions found, of one system or several.
type Report struct {
	Set     string    `json:"set"`
	Cases   int       `json:"cases"`
	Began   time.Time `json:"began"`
	Index   string    `json:"index,omitempty"` // that was searched
	Version string    `json:"version"`         // of the program
	Show    string    `json:"show,omitempty"`  // command that shows a run, with RUN for its ID
	Systems []System  `json:"systems"`
}

// A System is what one of them reached.
type System struct {
	Name        string            `json:"name"`
	Figures     []Figure          `json:"figures"`
	Slices      []Slice           `json:"slices,omitempty"`
	Lost        map[Stage]int     `json:"lost,omitempty"`
	Statuses    map[string]int    `json:"statuses"`
	Calibration []Bin             `json:"calibration,omitempty"` // of the verifier's score against whether the claim was right
	Worst       []Worst           `json:"worst,omitempty"`       // ten at most
	Against     []Paired          `json:"against,omitempty"`     // the first system of the report, or a baseline
	Remedies    []string          `json:"remedies,omitempty"`    // what usually helps, the most frequent loss first
	Outcomes    []Outcome         `json:"outcomes,omitempty"`
	NotJudged   map[string]int    `json:"not_judged,omitempty"` // questions that somebody was asked to judge, and that are not, by the measure's name or "claims"
	Notes       map[string]string `json:"notes,omitempty"`      // of a figure, by its name, or of "slices": what to know of it
}

// A Figure is the mean of one measure, with the bounds of 95 in 100 draws of the cases.
type Figure struct {
	Name  string  `json:"name"`
	Cases int     `json:"cases"` // that it applies to
	Mean  float64 `json:"mean"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Unit  string  `json:"unit,omitempty"`      // "ms", "tokens", "calls", "steps", "micros"; empty: a share in [0, 1]
	By    string  `json:"judged_by,omitempty"` // of a judged measure
	Less  bool    `json:"less_is_better,omitempty"`
}

// A Slice is the figures of a part of the cases.
type Slice struct {
	By      string   `json:"by"` // "type", "document", "tenant", "language", or as the set calls it
	Value   string   `json:"value"`
	Cases   int      `json:"cases"`
	Figures []Figure `json:"figures"`
}

// A Bin is the claims with a score in [Low, High).
type Bin struct {
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Cases int     `json:"cases"`
	Score float64 `json:"score"` // mean
	Right float64 `json:"right"` // share
}

// Worst is a case that went badly.
type Worst struct {
	ID       string  `json:"id"`
	Question string  `json:"question"`
	Run      string  `json:"run,omitempty"`
	Lost     Stage   `json:"lost,omitempty"`
	Score    float64 `json:"score"` // mean of its measures that are shares
	Why      string  `json:"why"`
}

// Paired is the difference of one figure between two systems on the same cases.
type Paired struct {
	Other  string  `json:"other"`
	Figure string  `json:"figure"`
	Cases  int     `json:"cases"` // that both have
	Mean   float64 `json:"mean"`  // of this less the other
	Low    float64 `json:"low"`   // paired bootstrap
	High   float64 `json:"high"`
	P      float64 `json:"p"` // two-sided, of a paired randomisation test
}
