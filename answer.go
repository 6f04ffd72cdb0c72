package assay

import "time"

// A Status says how a question was answered.
type Status string

// The statuses of an answer.
const (
	Answered      Status = "answered"       // every claim is supported by what it cites
	Incomplete    Status = "incomplete"     // the best verified part, with what is missing
	Conflicting   Status = "conflicting"    // the documents disagree; both sides are cited
	NotFound      Status = "not_found"      // the documents do not answer the question
	PendingReview Status = "pending_review" // waits for a person
	Rejected      Status = "rejected"       // a person rejected it
)

// A Reason says why an answer has its status. It is for programs; Justification says it in
// words.
type Reason string

// The reasons, by the status that they lead to.
const (
	ReasonSupported Reason = "supported" // answered: the claims are supported and cover the question

	ReasonDisagree  Reason = "disagree"           // conflicting: claims contradict each other
	ReasonDeclared  Reason = "declared_conflict"  // conflicting: the writer says that claims contradict each other
	ReasonVersions  Reason = "versions_disagree"  // conflicting: versions of one document do
	ReasonAmbiguous Reason = "ambiguous_question" // incomplete: it was asked back

	ReasonCutShort    Reason = "cut_short"    // incomplete: something ran out before an answer was verified
	ReasonNoService   Reason = "no_service"   // incomplete: a managed service did not answer
	ReasonUngraded    Reason = "ungraded"     // incomplete: the evidence could not be graded
	ReasonUnwritten   Reason = "unwritten"    // incomplete: no answer could be written
	ReasonUnverified  Reason = "unverified"   // incomplete: claims could not be verified
	ReasonUnsupported Reason = "unsupported"  // incomplete, not found: no claim that was written is supported
	ReasonNotAccepted Reason = "not_accepted" // incomplete: a judge or reflector holds it back
	ReasonTorn        Reason = "torn"         // incomplete: a list, table or conflict lacks an entry
	ReasonPartsOpen   Reason = "parts_open"   // incomplete: parts of the question are not answered
	ReasonGaps        Reason = "gaps"         // incomplete: the writer says that something is open, or statements were dropped
	ReasonUnjudged    Reason = "unjudged"     // incomplete: whether it answers the question could not be judged

	ReasonNoHits    Reason = "no_hits"    // not found: no passage was found
	ReasonNoAnswer  Reason = "no_answer"  // not found: no passage answers the question
	ReasonNoContent Reason = "no_content" // not found: the passages say nothing that an answer could be made of
	ReasonOffTopic  Reason = "off_topic"  // not found: what could be said does not answer the question
)

// A Stop says why a run stopped searching.
type Stop string

// The reasons to stop.
const (
	StopSufficient     Stop = "sufficient"      // the evidence was graded sufficient
	StopIterationLimit Stop = "iteration_limit" // no sub-question has an iteration left
	StopDeadline       Stop = "deadline"        // the run's wall time is spent
	StopTokenBudget    Stop = "token_budget"
	StopCallBudget     Stop = "call_budget"
	StopMoneyBudget    Stop = "money_budget"
	StopNoProgress     Stop = "no_progress" // the last searches brought nothing new
	StopCircular       Stop = "circular"    // the next step would repeat an earlier one
	StopAmbiguous      Stop = "ambiguous"   // the question can mean several things: it was asked back
)

// A Verdict is the verifier's word on a claim.
type Verdict string

// The verdicts. A verifier that fails or cannot decide says Unsupported.
const (
	Supported    Verdict = "supported"
	Contradicted Verdict = "contradicted"
	Unsupported  Verdict = "unsupported"
)

// A GradeVerdict says whether evidence suffices to answer a question.
type GradeVerdict string

// The grades of evidence.
const (
	Sufficient   GradeVerdict = "sufficient"
	Partly       GradeVerdict = "partly"
	Insufficient GradeVerdict = "insufficient"
)

// Evidence is a hit that a run has accepted. Numbers start at 1, are minted by
// the engine once per run and never by a model.
type Evidence struct {
	Number int `json:"n"`
	Hit    Hit `json:"hit"`
}

// An Answer is what a run ends in.
type Answer struct {
	Status   Status `json:"status"`
	Reason   Reason `json:"reason,omitempty"` // why it has that status
	Stop     Stop   `json:"stop"`
	Question string `json:"question"`
	// Understood is the question as it was gone about, where that is not how it was
	// asked: of a follow-up, with what the conversation says it means.
	Understood string `json:"understood,omitempty"`
	// UnderstoodByModel is set where a language model made Understood.
	UnderstoodByModel bool `json:"understood_by_model,omitempty"`
	// Text is the answer for people. Each claim, or the sentence that it is a part of, is
	// followed by its citation numbers in brackets. When nothing was found it says so.
	Text string `json:"text"`
	// Readings are the meanings of an ambiguous question that the answer speaks of, or,
	// where AskBack is set, that it could have.
	Readings []string `json:"readings,omitempty"`
	// AskBack is what to ask whoever asked, where the question can mean several things;
	// then there are no claims, and the status is Incomplete.
	AskBack string `json:"ask_back,omitempty"`
	// Relevance says how far the text answers the question, in [0, 1], whatever it rests
	// on; nil: it was not judged, as where nothing was answered.
	Relevance *float64 `json:"relevance,omitempty"`
	// Held is how likely the passages that were found hold the answer, in [0, 1], of the
	// part for which that is likeliest; nil: nobody judged it. Under the limit of that name
	// no answer is given.
	Held          *float64     `json:"held,omitempty"`
	Strategy      string       `json:"strategy"`         // the one that produced the answer: "static", "corrective"; "auto" when a budget ended it before any
	Cached        *Cached      `json:"cached,omitempty"` // set: it is the answer of an earlier run
	Claims        []Claim      `json:"claims"`
	Citations     []Citation   `json:"citations"` // by claim, then number, then span
	Missing       []Gap        `json:"missing"`   // what the answer lacks
	Searched      []Searched   `json:"searched"`  // every search, in order
	Closest       []Closest    `json:"closest"`   // what came nearest, when nothing was found
	Review        *Review      `json:"review,omitempty"`
	Notes         []Note       `json:"notes,omitempty"` // what to know of how it came about, each once: of its searches, see Results.Notes, and of roles that could not do their job
	Roles         []RoleUse    `json:"roles,omitempty"` // who did what
	Index         IndexVersion `json:"index"`           // that was searched; of several searches the one with the least Coverage
	Iterations    int          `json:"iterations"`
	Justification string       `json:"justification"` // why the status is what it is, in a sentence
	Run           string       `json:"run"`
	Usage         Usage        `json:"usage"`
	ElapsedMS     int64        `json:"elapsed_ms"` // while the run was active
}

// A Review is what the judges of a strategy say of its answer, in the terms of the publication
// that the strategy implements. It is not verified. Fields that the strategy does not have are
// empty.
type Review struct {
	// RetrievalQuality is "relevant", "partially_relevant" or "not_relevant", and
	// GenerationQuality "supported", "partially_supported" or "not_supported" (self).
	RetrievalQuality  string `json:"retrieval_quality,omitempty"`
	GenerationQuality string `json:"generation_quality,omitempty"`
	ContextsUsed      []int  `json:"contexts_used,omitempty"` // numbers of the evidence that was read (self)

	// Verdict is "ACCEPT" or "REVISE" (judge), "COMPLETED" or "INCOMPLETE" (reflect).
	Verdict       string   `json:"verdict,omitempty"`
	Justification string   `json:"justification,omitempty"`
	Coverage      *float64 `json:"coverage,omitempty"` // answered share of the question, in [0, 1] (reflect)

	History    []Exchange `json:"history,omitempty"` // queries and what each found (reflect)
	Iterations int        `json:"iterations"`        // rounds or drafts
	ByModel    bool       `json:"by_model,omitempty"`
}

// An Exchange is a query and what was found with it, in words.
type Exchange struct {
	Query  string `json:"query"`
	Answer string `json:"answer"`
}

// A Gap is something that an answer lacks.
type Gap struct {
	Text string `json:"text"`

	// ByModel is set where a language model says so. Nothing has verified its words.
	ByModel bool `json:"by_model,omitempty"`
}

// A Note says something about how an answer or the results of a search came about.
type Note struct {
	Kind NoteKind `json:"kind"`
	Text string   `json:"text"`
}

// A NoteKind says what a note is about.
type NoteKind string

// The kinds of note.
const (
	NoteSearch    NoteKind = "search"    // how passages were found
	NoteCoverage  NoteKind = "coverage"  // not all passages have vectors yet
	NoteReranker  NoteKind = "reranker"  // the configured reranker failed, and the local one stood in
	NoteQuestion  NoteKind = "question"  // how the question was understood
	NoteRole      NoteKind = "role"      // how a role did its job
	NoteStoodIn   NoteKind = "stood_in"  // a local role did the job of a model that failed
	NoteFailed    NoteKind = "failed"    // a role failed
	NoteLeftOut   NoteKind = "left_out"  // statements or passages that are not shown or read
	NoteCorrected NoteKind = "corrected" // statements that cite, or are, other words than the writer's
	NoteLimit     NoteKind = "limit"     // something that the run had no room for
	NoteElsewhere NoteKind = "elsewhere" // the web or a managed service
	NoteCached    NoteKind = "cached"    // the answer is that of an earlier run
)

// A Claim is one checkable statement: the bytes [Start, End) of Answer.Text.
type Claim struct {
	Start     int     `json:"start"`
	End       int     `json:"end"`
	Verdict   Verdict `json:"verdict"`
	Score     float64 `json:"score"`     // the verifier's confidence in Supported, in [0, 1]
	Citations []int   `json:"citations"` // evidence numbers, ascending

	// Repaired is set where what the writer named does not say the claim, and what it
	// cites now does.
	Repaired bool `json:"repaired,omitempty"`

	// Quoted is set where the claim is the source's own sentence, in the place of a
	// statement that was refused.
	Quoted bool `json:"quoted,omitempty"`
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
	Page     int      `json:"page"` // 0: the format has no pages
	Line     int      `json:"line"` // source line of Start, from 1; 0: not known
	Start    int      `json:"start"`
	End      int      `json:"end"`
	Quote    string   `json:"quote"`
	Origin   Origin   `json:"origin,omitempty"`

	// Collection is where the document is kept, where several were searched each for itself.
	Collection string `json:"collection,omitempty"`
}

// Cached says whose answer it was that a run gave again.
type Cached struct {
	Run      string `json:"run"`      // that found it
	Question string `json:"question"` // that it answered
}

// Searched is one search of a run.
type Searched struct {
	Query        string       `json:"query"`
	ByModel      bool         `json:"by_model,omitempty"`    // a language model made the query
	Collections  []string     `json:"collections,omitempty"` // that it was narrowed to, beyond the caller's; empty: to none
	Origin       Origin       `json:"origin,omitempty"`      // what was searched
	Filter       Filter       `json:"filter"`                // the caller's and the sub-question's
	Hits         int          `json:"hits"`
	TopRelevance float64      `json:"top_relevance"` // in [0, 1]; 0 without hits
	Grade        GradeVerdict `json:"grade"`
}

// Closest is a passage that came nearest to the question without answering it.
type Closest struct {
	URI       string   `json:"uri"`
	Title     string   `json:"title"`
	Heading   []string `json:"heading"`
	Line      int      `json:"line"`
	Relevance float64  `json:"relevance"`
	Quote     string   `json:"quote"`
}

// A RoleUse says who did a role's jobs in a run. A role that more than one did, as
// when a provider failed, has one for each.
type RoleUse struct {
	Role   string `json:"role"`             // "planner", "grader", "generator", "verifier"; SearchRole
	Model  string `json:"model"`            // LocalModel, or as the model is called: "openai/gpt-4.1"
	Prompt string `json:"prompt,omitempty"` // the template and its hash: "grader@5f0c7a1e"
	Usage  Usage  `json:"usage"`
}

// SearchRole is the role of encoders and rerankers that searches asked and that are
// services. Those in the program are not listed.
const SearchRole = "search"

// ManagedRole is that of a service that has answered by itself.
const ManagedRole = "managed"

// LocalModel is what does a role's job without a language model.
const LocalModel = "local"

// Usage is what something has spent.
type Usage struct {
	Calls        int   `json:"calls"` // model calls, retries included
	InputTokens  int   `json:"input_tokens"`
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

// A Budget is what a run may spend. Zero means the default in the engine's
// documentation for Iterations and Wall, and no limit for the others.
type Budget struct {
	Iterations int           `json:"iterations"` // per sub-question
	Calls      int           `json:"calls"`
	Tokens     int           `json:"tokens"` // input and output together
	CostMicros int64         `json:"cost_micros"`
	Wall       time.Duration `json:"wall_ns"` // while the run is active, end to end
}
