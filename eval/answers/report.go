package answers

import (
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/eval/testset"
)

// A Stage is the step of a run at which a question was lost.
type Stage string

// The stages, in the order in which a question passes through them.
const (
	Mislabelled     Stage = "mislabelled"      // an error of the set: its gold quote is not in the document
	NotIngested     Stage = "not_ingested"     // no stored document contains the gold
	NotRetrieved    Stage = "not_retrieved"    // no search returned it
	RankedTooLow    Stage = "ranked_too_low"   // a search returned it below the hits that are read
	GradedAway      Stage = "graded_away"      // the grader judged it irrelevant, or the question unanswerable
	NotCited        Stage = "not_cited"        // it was evidence, but no shown claim cites it
	VerifierWrong   Stage = "verifier_wrong"   // a right claim was rejected, or a wrong one accepted
	GeneratedWrong  Stage = "generated_wrong"  // it is cited, but the answer is wrong
	AnsweredWrongly Stage = "answered_wrongly" // an unanswerable question was answered
	Broke           Stage = "broke"            // the run ended in an error
)

// An Outcome is the result of a case under one system. Outcomes are written to disk as soon as they
// are known, one JSON object per line. All figures are computed from them.
type Outcome struct {
	testset.Case
	System string `json:"system"` // a strategy's name, or the contender's

	Run       string       `json:"run,omitempty"`
	Error     string       `json:"error,omitempty"` // of a failed run, which has no answer
	Answer    assay.Answer `json:"answer,omitzero"`
	Retrieved []string     `json:"retrieved,omitempty"` // distinct documents of the hits of all searches, best first; 100 at most
	Contexts  []Context    `json:"contexts,omitempty"`  // the evidence that the generator was given, in order

	Mistake string             `json:"mistake,omitempty"` // error of the set: gold that quotes text which its document does not contain
	Right   bool               `json:"right"`             // answered from gold, or refused if unanswerable
	Lost    Stage              `json:"lost,omitempty"`    // set if not Right
	Metrics map[string]float64 `json:"metrics,omitempty"` // by measure name; measures that do not apply are absent
	Judges  map[string]string  `json:"judges,omitempty"`  // by measure name: "local", or a model
	Began   time.Time          `json:"began"`

	NotJudged map[string]string `json:"not_judged,omitempty"` // by measure name, or "claims": the reason
	Judging   assay.Usage       `json:"judging,omitzero"`     // usage of the judge
}

// A Context is a passage that the generator was given, or that was found for a claim afterwards.
type Context struct {
	Number   int    `json:"n"`
	Document string `json:"document"`
	URI      string `json:"uri"`
	Start    int    `json:"start"`
	End      int    `json:"end"`
	Text     string `json:"text"`
	Gold     bool   `json:"gold"` // contains gold, or overlaps it
	Cited    bool   `json:"cited"`
}

// A Report is the result of an evaluation of whole questions, for one or more systems.
type Report struct {
	Set     string    `json:"set"`
	Cases   int       `json:"cases"`
	Began   time.Time `json:"began"`
	Index   string    `json:"index,omitempty"` // the index that was searched
	Version string    `json:"version"`         // of the program
	Show    string    `json:"show,omitempty"`  // command that shows a run, with RUN in place of its ID
	Systems []System  `json:"systems"`
}

// A System is the result of one system.
type System struct {
	Name        string            `json:"name"`
	Figures     []Figure          `json:"figures"`
	Slices      []Slice           `json:"slices,omitempty"`
	Lost        map[Stage]int     `json:"lost,omitempty"`
	Statuses    map[string]int    `json:"statuses"`
	Calibration []stat.Bin        `json:"calibration,omitempty"` // the verifier's score against whether the claim was right
	Worst       []Worst           `json:"worst,omitempty"`       // ten at most
	Against     []Paired          `json:"against,omitempty"`     // differences to the first system of the report, or to a baseline
	Remedies    []string          `json:"remedies,omitempty"`    // usual remedies, for the most frequent loss first
	Outcomes    []Outcome         `json:"outcomes,omitempty"`
	NotJudged   map[string]int    `json:"not_judged,omitempty"` // questions that a judge failed to judge, by measure name or "claims"
	Notes       map[string]string `json:"notes,omitempty"`      // remarks by figure name, or on "slices"
}

// A Figure is the mean of one measure over the cases, with its 95% bootstrap bounds.
type Figure struct {
	Name  string  `json:"name"`
	Cases int     `json:"cases"` // to which it applies
	Mean  float64 `json:"mean"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Unit  string  `json:"unit,omitempty"`      // "ms", "tokens", "calls", "steps", "searches", "micros"; empty: a share in [0, 1]
	By    string  `json:"judged_by,omitempty"` // if the measure is judged
	Less  bool    `json:"less_is_better,omitempty"`
}

// A Slice is the figures of a subset of the cases.
type Slice struct {
	By      string   `json:"by"` // "type", "document", "tenant", "language", or a name of the set
	Value   string   `json:"value"`
	Cases   int      `json:"cases"`
	Figures []Figure `json:"figures"`
}

// Worst is a case with a bad result.
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
	Cases  int     `json:"cases"` // number of common cases
	Mean   float64 `json:"mean"`  // this system minus the other
	Low    float64 `json:"low"`   // paired bootstrap
	High   float64 `json:"high"`
	P      float64 `json:"p"` // two-sided, from a paired randomisation test
}
