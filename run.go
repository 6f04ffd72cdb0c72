package assay

import (
	"encoding/json"
	"time"
)

// A RunState says where a run stands.
type RunState string

// The states of a run.
const (
	RunActive    RunState = "active"    // started and not ended: live while its lease is held, else interrupted
	RunSuspended RunState = "suspended" // waits for a human decision
	RunDone      RunState = "done"      // has an answer
	RunFailed    RunState = "failed"    // ended by an error
)

// A Run is one question's whole session. Its journal holds what it did.
type Run struct {
	ID        string          `json:"id"`
	Principal Principal       `json:"principal"`
	Question  string          `json:"question"`
	Request   json.RawMessage `json:"request"` // what the engine needs to run it again, canonical JSON
	State     RunState        `json:"state"`
	Error     string          `json:"error,omitempty"` // when failed
	Answer    *Answer         `json:"answer,omitempty"`
	Created   time.Time       `json:"created"`
	Updated   time.Time       `json:"updated"`
	Live      bool            `json:"live"`  // some process holds its lease
	Steps     int             `json:"steps"` // records in its journal
}

// A StepKind names the effect that a step has.
type StepKind string

// The kinds of step.
const (
	StepPlan     StepKind = "plan"
	StepSearch   StepKind = "search"
	StepRead     StepKind = "read" // the bytes of a stored document
	StepGrade    StepKind = "grade"
	StepGenerate StepKind = "generate"
	StepVerify   StepKind = "verify"
	StepModel    StepKind = "model"
	StepRerank   StepKind = "rerank"
	StepRole     StepKind = "role"   // a job of another role than those above
	StepReader   StepKind = "reader" // the reader compares texts
	StepTool     StepKind = "tool"   // one of the read-only tools
	StepWeb      StepKind = "web"    // a search of the web, or a page of it
	StepCache    StepKind = "cache"  // a look for the answer of an earlier run
	StepHuman    StepKind = "human"
	StepClock    StepKind = "clock"
)

// A Record is one step of a run as the journal keeps it. It is immutable.
type Record struct {
	Sequence int64  // tenant-wide, from 1, minted by the journal
	Run      string // run ID
	Ordinal  int    // position in the run's journal, from 0, minted by the journal
	Path     string // where in the run: "sub[1]/round[0]/search"; unique in it
	Kind     StepKind
	Model    string // that was called; empty: none

	Input  json.RawMessage // canonical JSON
	Output json.RawMessage // canonical JSON; nil when Error is set
	Error  *RecordedError

	Usage   Usage
	Started time.Time
	Elapsed time.Duration
	Active  time.Duration // how long the run had been active when the step ended

	// Bytes are the record's exact stored bytes without the payload (Input,
	// Output, Error), which stands in it as a salted hash. Leaf is the hash of
	// Bytes as a Merkle tree leaf: SHA-256 of a zero byte and Bytes. The journal
	// fills both in.
	Bytes []byte
	Leaf  [32]byte
}

// A RecordedError is an error as a journal keeps it: the kind is the text of one
// of this package's Err values, or empty.
type RecordedError struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}
