package assay

import (
	"encoding/json"
	"time"
)

// A RunState is the state of a run.
type RunState string

// The states of a run.
const (
	RunActive    RunState = "active"    // started and not ended: live while its lease is held, otherwise interrupted
	RunSuspended RunState = "suspended" // waits for a human decision
	RunDone      RunState = "done"      // has an answer
	RunFailed    RunState = "failed"    // ended by an error
	RunErased    RunState = "erased"    // its question, payloads and answer were erased; its steps' headers remain
)

// A Run is the whole session of one question. Its journal holds its steps.
type Run struct {
	ID        string          `json:"id"`
	Principal Principal       `json:"principal"`
	Question  string          `json:"question"`
	Request   json.RawMessage `json:"request"` // the engine's input for a resume or replay, canonical JSON
	State     RunState        `json:"state"`
	Error     string          `json:"error,omitempty"` // set if the run failed
	Answer    *Answer         `json:"answer,omitempty"`
	Created   time.Time       `json:"created"`
	Updated   time.Time       `json:"updated"`
	Live      bool            `json:"live"`  // a process holds its lease
	Steps     int             `json:"steps"` // records in its journal
}

// A StepKind names the effect that a step has.
type StepKind string

// The kinds of step.
const (
	StepPlan     StepKind = "plan"
	StepSearch   StepKind = "search"
	StepRead     StepKind = "read" // bytes of a stored document
	StepGrade    StepKind = "grade"
	StepGenerate StepKind = "generate"
	StepVerify   StepKind = "verify"
	StepModel    StepKind = "model"
	StepRerank   StepKind = "rerank"
	StepRole     StepKind = "role"   // work of any other role
	StepReader   StepKind = "reader" // a comparison of texts by the reader
	StepTool     StepKind = "tool"   // a call of one of the read-only tools, made or refused
	StepWeb      StepKind = "web"    // a web search or a web page
	StepCache    StepKind = "cache"  // a cache lookup for an earlier answer
	StepRung     StepKind = "rung"   // a rung of the escalation ladder, recorded after its search and grade
	StepHuman    StepKind = "human"
	StepClock    StepKind = "clock"
)

// A Record is one step of a run in the journal. It is immutable.
type Record struct {
	Sequence int64  // tenant-wide, from 1, assigned by the journal
	Run      string // run ID
	Ordinal  int    // position in the run's journal, from 0, assigned by the journal
	Path     string // position in the run: "sub[1]/round[0]/search"; unique within it
	Kind     StepKind
	Model    string // the model called; empty: none

	Input  json.RawMessage // canonical JSON
	Output json.RawMessage // canonical JSON; nil if Error is set
	Error  *RecordedError

	Usage   Usage
	Started time.Time
	Elapsed time.Duration
	Active  time.Duration // the run's active time when the step ended

	// Bytes are the exact stored bytes of the record. They hold a salted hash in place of the
	// payload (Input, Output, Error). Leaf is the hash of Bytes as a Merkle tree leaf: SHA-256 of a
	// zero byte and Bytes. The journal sets both.
	Bytes []byte
	Leaf  [32]byte
}

// A RecordedError is an error in a journal. Kind is the text of one of this package's Err values,
// or empty.
type RecordedError struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}
