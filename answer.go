package assay

import (
	"cmp"
	"slices"
	"time"
)

// A Status is the outcome of a question.
type Status string

// The statuses of an answer.
const (
	Answered      Status = "answered"       // every claim is supported by what it cites
	Incomplete    Status = "incomplete"     // the best verified part; Missing lists the rest
	Conflicting   Status = "conflicting"    // the documents disagree; both sides are cited
	NotFound      Status = "not_found"      // the documents do not answer the question
	PendingReview Status = "pending_review" // waits for a person's decision
	Rejected      Status = "rejected"       // a person rejected it, or it was withheld
)

// A Reason is why an answer has its status, in a form for programs. Justification explains it in
// words.
type Reason string

// The reasons, grouped by the status that they lead to.
const (
	ReasonSupported Reason = "supported" // answered: the claims are supported and cover the question

	ReasonDisagree  Reason = "disagree"           // conflicting: claims contradict each other
	ReasonDeclared  Reason = "declared_conflict"  // conflicting: the writer reports that claims contradict each other
	ReasonVersions  Reason = "versions_disagree"  // conflicting: versions of one document contradict each other
	ReasonAmbiguous Reason = "ambiguous_question" // incomplete: the user was asked which meaning is intended

	ReasonCutShort    Reason = "cut_short"       // incomplete: a limit was reached before an answer was verified
	ReasonNoService   Reason = "no_service"      // incomplete: a managed service did not answer
	ReasonUngraded    Reason = "ungraded"        // incomplete: the evidence could not be graded
	ReasonUnwritten   Reason = "unwritten"       // incomplete: no answer could be written
	ReasonUnverified  Reason = "unverified"      // incomplete: claims could not be verified
	ReasonUnsupported Reason = "unsupported"     // incomplete, not found: none of the claims written is supported
	ReasonNotAccepted Reason = "not_accepted"    // incomplete: a judge or reflector rejected the answer
	ReasonTorn        Reason = "torn"            // incomplete: a list, table or conflict lacks an entry
	ReasonPartsOpen   Reason = "parts_open"      // incomplete: parts of the question are not answered
	ReasonMalformed   Reason = "malformed_calls" // incomplete: the search ended in the error state of StopMalformed
	ReasonGaps        Reason = "gaps"            // incomplete: the writer reports an open point, or statements were dropped
	ReasonUnjudged    Reason = "unjudged"        // incomplete: no judgement of whether the text answers the question

	ReasonNoHits    Reason = "no_hits"    // not found: no passage was found
	ReasonNoAnswer  Reason = "no_answer"  // not found: no passage answers the question
	ReasonNoContent Reason = "no_content" // not found: the passages have no content to build an answer from
	ReasonOffTopic  Reason = "off_topic"  // not found: the supported claims do not answer the question

	ReasonReview            Reason = "review"             // pending review: a policy or the asker wants a person's decision
	ReasonReviewer          Reason = "reviewer"           // rejected: a reviewer rejected it
	ReasonExpired           Reason = "review_expired"     // rejected: no reviewer decided before the deadline
	ReasonReviewerStatement Reason = "reviewer_statement" // incomplete: a reviewer states what the documents do not support
	ReasonWithheld          Reason = "withheld"           // rejected: the text of a canary document was found in the answer or in a request of the run
)

// A Stop is why a run stopped searching.
type Stop string

// The reasons to stop.
const (
	StopSufficient     Stop = "sufficient"      // the evidence was graded sufficient, or an actor's self-critique called it so
	StopIterationLimit Stop = "iteration_limit" // every sub-question has used its iterations
	StopDeadline       Stop = "deadline"        // the run's wall time is spent
	StopTokenBudget    Stop = "token_budget"
	StopCallBudget     Stop = "call_budget"
	StopMoneyBudget    Stop = "money_budget"
	StopQuota          Stop = "quota"           // a limit of the user, the API key or the tenant is reached
	StopStopped        Stop = "stopped"         // an administrator stopped the tenant or all runs
	StopCancelled      Stop = "cancelled"       // its owner cancelled the run
	StopNoProgress     Stop = "no_progress"     // the last searches found no new passages
	StopCircular       Stop = "circular"        // the next step would repeat an earlier one
	StopMalformed      Stop = "malformed_calls" // an actor's calls of tools were malformed several times in a row, or its replies unreadable
	StopAmbiguous      Stop = "ambiguous"       // the question is ambiguous, and the user was asked which meaning is intended
)

// A Verdict is the verifier's judgement of a claim.
type Verdict string

// The verdicts. A verifier that fails or cannot decide returns Unsupported.
const (
	Supported    Verdict = "supported"
	Contradicted Verdict = "contradicted"
	Unsupported  Verdict = "unsupported"
)

// A GradeVerdict grades whether evidence suffices to answer a question.
type GradeVerdict string

// The grades of evidence.
const (
	Sufficient   GradeVerdict = "sufficient"
	Partly       GradeVerdict = "partly"
	Insufficient GradeVerdict = "insufficient"
)

// Evidence is a hit that a run has accepted. Numbers start at 1. The engine assigns each number
// once per run; a model never does.
type Evidence struct {
	Number int `json:"n"`
	Hit    Hit `json:"hit"`
}

// An Answer is the result of a run.
type Answer struct {
	Status   Status `json:"status"`
	Reason   Reason `json:"reason,omitempty"` // why it has that status
	Stop     Stop   `json:"stop"`
	Question string `json:"question"`
	// Understood is the question that was searched, if it differs from the one asked: a follow-up
	// completed from the conversation.
	Understood string `json:"understood,omitempty"`
	// UnderstoodByModel is set if a language model made Understood.
	UnderstoodByModel bool `json:"understood_by_model,omitempty"`
	// Text is the answer for people. Each claim, or the sentence that contains it, is followed by
	// its citation numbers in brackets. If no answer was found, Text reports that.
	Text string `json:"text"`
	// Readings are the meanings of an ambiguous question that the answer covers or, if AskBack is
	// set, the meanings that the question could have.
	Readings []string `json:"readings,omitempty"`
	// AskBack is the question to put to the user if theirs is ambiguous. There are no claims then,
	// and the status is Incomplete.
	AskBack string `json:"ask_back,omitempty"`
	// Relevance is how far the text answers the question, in [0, 1], regardless of its evidence. It
	// is nil if it was not judged, for example because there is no answer.
	Relevance *float64 `json:"relevance,omitempty"`
	// Held is the probability in [0, 1] that the passages found contain the answer, for the part of
	// the question where it is highest. It is nil if it was not judged. Below the limit of that
	// name no answer is given.
	Answerability *float64     `json:"held,omitempty"`
	Strategy      string       `json:"strategy"`         // the one that produced the answer: "static", "corrective"; "auto" if a budget ended the run first
	Cached        *Cached      `json:"cached,omitempty"` // set if it is the answer of an earlier run
	Claims        []Claim      `json:"claims"`
	Citations     []Citation   `json:"citations"` // by claim, then number, then span
	Missing       []Gap        `json:"missing"`   // gaps of the answer
	Searched      []Searched   `json:"searched"`  // every search, in order
	Closest       []Closest    `json:"closest"`   // the nearest passages, if no answer was found
	Review        *Review      `json:"review,omitempty"`
	Oversight     *Oversight   `json:"oversight,omitempty"` // nil: no person was to review it
	Notes         []Note       `json:"notes,omitempty"`     // remarks on the searches (see Results.Notes) and on roles that failed, each once
	Roles         []RoleUse    `json:"roles,omitempty"`     // the models that did each role's work
	Index         IndexVersion `json:"index"`               // the index version searched; of several searches the one with the least Coverage
	Iterations    int          `json:"iterations"`
	Justification string       `json:"justification"` // reason for the status, in a sentence
	Run           string       `json:"run"`
	Usage         Usage        `json:"usage"`
	ElapsedMS     int64        `json:"elapsed_ms"` // while the run was active
}

// A Decision is what became of an answer that waited for a person.
type Decision string

// The decisions.
const (
	DecisionPending  Decision = "pending"
	DecisionApproved Decision = "approved"
	DecisionEdited   Decision = "edited"
	DecisionRejected Decision = "rejected"
	DecisionExpired  Decision = "expired" // rejected because the deadline passed
)

// An Oversight is the decision of reviewers about an answer.
type Oversight struct {
	Decision Decision  `json:"decision"`
	By       []string  `json:"by,omitempty"` // users who decided, in the order of their decisions
	At       time.Time `json:"at,omitzero"`
	Reason   string    `json:"reason,omitempty"`  // of a rejection
	Deadline time.Time `json:"deadline,omitzero"` // by which a decision is expected, while it is pending
}

// A Review is the judgement of a strategy's own judges on its answer, in the terms of the
// publication that the strategy implements. Judgements are not verified. Fields that the strategy does not
// use are empty.
type Review struct {
	// RetrievalQuality is "relevant", "partially_relevant" or "not_relevant", and
	// GenerationQuality "supported", "partially_supported" or "not_supported" (self).
	RetrievalQuality  string `json:"retrieval_quality,omitempty"`
	GenerationQuality string `json:"generation_quality,omitempty"`
	ContextsUsed      []int  `json:"contexts_used,omitempty"` // numbers of the evidence that was read (self)

	// Verdict is "ACCEPT" or "REVISE" (judge), "COMPLETED" or "INCOMPLETE" (reflect).
	Verdict       string   `json:"verdict,omitempty"`
	Justification string   `json:"justification,omitempty"`
	Coverage      *float64 `json:"coverage,omitempty"`  // answered share of the question, in [0, 1] (reflect)
	Threshold     *float64 `json:"threshold,omitempty"` // the coverage that COMPLETED needs, in [0, 1] (reflect)

	History    []Exchange `json:"history,omitempty"` // queries and the findings of each (reflect)
	Iterations int        `json:"iterations"`        // rounds or drafts
	ByModel    bool       `json:"by_model,omitempty"`

	// SubAnswers are the answers to the sub-questions of a complex question, from which the answer
	// is put together (adaptive). They are verified.
	SubAnswers []SubAnswer `json:"sub_answers,omitempty"`
}

// A SubAnswer is the answer to a sub-question. It has only claims that are supported by the words
// that they cite.
type SubAnswer struct {
	Question  string     `json:"question"`
	Answer    string     `json:"answer"`    // with citation numbers in brackets; empty: none was found
	Claims    []Claim    `json:"claims"`    // byte spans of Answer
	Citations []Citation `json:"citations"` // with the numbers of the whole answer's evidence
}

// An Exchange is a query and its findings, in words.
type Exchange struct {
	Query   string   `json:"query"`
	Answer  string   `json:"answer"`
	Sources []string `json:"sources,omitempty"` // URIs of the documents that the answer is from
}

// A Gap is something that an answer lacks.
type Gap struct {
	Text string `json:"text"`

	// ByModel is set if a language model reported the gap. Its words are not verified.
	ByModel bool `json:"by_model,omitempty"`
}

// A Note is a remark on how an answer or the results of a search came about.
type Note struct {
	Kind NoteKind `json:"kind"`
	Text string   `json:"text"`
}

// A NoteKind is the subject of a note.
type NoteKind string

// The kinds of note.
const (
	NoteSearch    NoteKind = "search"    // how passages were found
	NoteCoverage  NoteKind = "coverage"  // not all passages have vectors yet
	NoteReranker  NoteKind = "reranker"  // the configured reranker failed, and the local one replaced it
	NoteQuestion  NoteKind = "question"  // how the question was understood
	NoteRole      NoteKind = "role"      // how a role did its job
	NoteStoodIn   NoteKind = "stood_in"  // a local role replaced a model that failed
	NoteFailed    NoteKind = "failed"    // a role failed
	NoteLeftOut   NoteKind = "left_out"  // statements or passages that are not shown or read
	NoteCorrected NoteKind = "corrected" // statements whose citations or words differ from the writer's
	NoteLimit     NoteKind = "limit"     // something that did not fit into the run's limits
	NoteElsewhere NoteKind = "elsewhere" // the web or a managed service was used
	NoteCached    NoteKind = "cached"    // the answer is reused from an earlier run
)

// A Claim is one checkable statement: the bytes [Start, End) of Answer.Text.
type Claim struct {
	Start     int     `json:"start"`
	End       int     `json:"end"`
	Verdict   Verdict `json:"verdict"`
	Score     float64 `json:"score"`     // the verifier's confidence in Supported, in [0, 1]
	Citations []int   `json:"citations"` // evidence numbers, ascending

	// Repaired is set if the evidence that the writer named does not support the claim and the
	// evidence that it now cites does.
	Repaired bool `json:"repaired,omitempty"`

	// Quoted is set if the claim is a sentence of the source that replaced a rejected statement.
	Quoted bool `json:"quoted,omitempty"`

	// Reviewer is the user who states the claim in a review although the documents do not support it.
	// The text says so too. Empty: a claim from the documents.
	Reviewer string `json:"reviewer,omitempty"`
}

// A Citation ties a claim to the words that support it: Quote is
// Text[Start:End] of the named document version.
type Citation struct {
	Number   int      `json:"n"`     // evidence number
	Claim    int      `json:"claim"` // index into Answer.Claims
	Document string   `json:"document"`
	Version  string   `json:"version"`
	URI      string   `json:"uri"`
	Title    string   `json:"title"`
	Heading  []string `json:"heading"`
	Page     int      `json:"page"`           // 0: the format has no pages
	Link     string   `json:"link,omitempty"` // PageLink(URI, Page)
	Line     int      `json:"line"`           // source line of Start, from 1; 0: not known
	Start    int      `json:"start"`
	End      int      `json:"end"`
	Quote    string   `json:"quote"`
	Origin   Origin   `json:"origin,omitempty"`

	// Boxes are where the quoted blocks lie on the source's pages, if that is known.
	Boxes []Rectangle `json:"boxes,omitempty"`

	// Provenance is set if the source does not contain the quoted text as text. The Quote of a
	// description is a model's words about the document, not the document's.
	Provenance ProvenanceKind `json:"provenance,omitempty"`
	Confidence float32        `json:"confidence,omitempty"` // of recognition, in [0, 1]
	Model      string         `json:"model,omitempty"`      // of a description

	Aliases []string `json:"aliases,omitempty"` // other URIs with the same content; see Document

	// Collection is the collection of the document, set if several were searched separately.
	Collection string `json:"collection,omitempty"`
}

// Cached identifies the earlier run whose answer was reused.
type Cached struct {
	Run      string `json:"run"`      // the run that found the answer
	Question string `json:"question"` // the question that it answered
}

// Searched is one search of a run.
type Searched struct {
	Query        string       `json:"query"`
	ByModel      bool         `json:"by_model,omitempty"`    // a language model made the query
	Collections  []string     `json:"collections,omitempty"` // the ones it was narrowed to, within the caller's; empty: not narrowed
	Origin       Origin       `json:"origin,omitempty"`      // the source searched
	Filter       Filter       `json:"filter"`                // the caller's and the sub-question's
	Hits         int          `json:"hits"`
	TopRelevance float64      `json:"top_relevance"` // in [0, 1]; 0 without hits
	Grade        GradeVerdict `json:"grade"`
	Rung         string       `json:"rung,omitempty"` // of the escalation ladder; empty: the question itself, or another strategy's search
}

// Closest is a passage that came near to the question without answering it.
type Closest struct {
	URI       string   `json:"uri"`
	Title     string   `json:"title"`
	Heading   []string `json:"heading"`
	Line      int      `json:"line"`
	Relevance float64  `json:"relevance"`
	Quote     string   `json:"quote"`

	Provenance ProvenanceKind `json:"provenance,omitempty"` // see Citation
	Confidence float32        `json:"confidence,omitempty"`
	Model      string         `json:"model,omitempty"`
}

// A RoleUse is the use of one model for a role in a run. A role that several models performed, as
// after a provider failure, has one RoleUse for each.
type RoleUse struct {
	Role   string `json:"role"`             // "planner", "grader", "generator", "verifier"; SearchRole
	Model  string `json:"model"`            // LocalModel, or the model's name: "openai/gpt-4.1"
	Prompt string `json:"prompt,omitempty"` // the template and its hash: "grader@5f0c7a1e"
	Usage  Usage  `json:"usage"`
}

// SearchRole is the role of the remote encoders and rerankers that searches called. Those built
// into the program are not listed.
const SearchRole = "search"

// ManagedRole is the role of a managed service that answered the question itself.
const ManagedRole = "managed"

// LocalModel is the model name of a role that works without a language model.
const LocalModel = "local"

// Usage is the amount spent.
type Usage struct {
	Calls        int   `json:"calls"`        // model calls; one that was retried counts once
	InputTokens  int   `json:"input_tokens"` // of all attempts
	OutputTokens int   `json:"output_tokens"`
	CostMicros   int64 `json:"cost_micros"` // millionths of the configured currency
	Searches     int   `json:"searches"`
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Calls:        u.Calls + v.Calls,
		InputTokens:  u.InputTokens + v.InputTokens,
		OutputTokens: u.OutputTokens + v.OutputTokens,
		CostMicros:   u.CostMicros + v.CostMicros,
		Searches:     u.Searches + v.Searches,
	}
}

// A Budget limits what a run may spend. Zero means the default in the engine's documentation for
// Iterations and Wall, and no limit for the others.
type Budget struct {
	Iterations int           `json:"iterations"` // per sub-question
	Calls      int           `json:"calls"`
	Tokens     int           `json:"tokens"` // input and output together
	CostMicros int64         `json:"cost_micros"`
	Wall       time.Duration `json:"wall_ns"` // while the run is active, end to end
}

// Sources groups the citations by number, in ascending order. Within a source it keeps each quoted
// span once, in text order, without spans that another one contains.
func (a Answer) Sources() [][]Citation {
	var sources [][]Citation
	at := map[int]int{} // evidence number → index into sources
	for _, c := range a.Citations {
		i, ok := at[c.Number]
		if !ok {
			i = len(sources)
			at[c.Number] = i
			sources = append(sources, nil)
		}
		sources[i] = append(sources[i], c)
	}
	slices.SortFunc(sources, func(x, y []Citation) int { return cmp.Compare(x[0].Number, y[0].Number) })
	for i, s := range sources {
		slices.SortFunc(s, func(x, y Citation) int { return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(y.End, x.End)) })
		kept, end := s[:0], -1
		for _, c := range s { // sorted by start
			if c.End > end {
				kept, end = append(kept, c), c.End
			}
		}
		sources[i] = kept
	}
	return sources
}
