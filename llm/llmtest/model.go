package llmtest

import (
	"net/http"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
)

// Canary is the credential that a suite opens a provider with. It may leave it in a
// header of a request to the server that it is meant for, and in nothing else.
const Canary = "sk-canary-7f3a9c51d2e84b06"

// A Setup is how a suite opens a provider.
type Setup struct {
	BaseURL  string       // of the server; the provider appends the paths of its format
	HTTP     *http.Client // to reach it with, and nothing else
	Stream   bool         // replies are to be asked for as streams
	Idle     time.Duration
	MaxBytes int64 // Idle and MaxBytes: as those of wire.Client; 0: the default
}

// A Wire is a provider and the server side of its format, for [TestModel]. What a
// server sends is written from the vendor's documentation, not from what the
// provider happens to read.
type Wire struct {
	// Open opens a model with Canary as each of its credentials. The model makes
	// one request for each call.
	Open func(t testing.TB, s Setup) llm.Model

	// Streams reports whether a request asks for its reply as a stream.
	Streams func(r *http.Request, body []byte) bool

	// Request reads a request back. What the format has no place for is left zero and
	// named in Lacks.
	Request func(t testing.TB, r *http.Request, body []byte) llm.Request

	// Reply is what a server sends for a scripted reply.
	Reply func(s Script, stream bool) Body

	// Fail is what a server sends instead of a reply. False: the vendor documents no
	// such error. Every format has RateLimited, ServerError, BadKey and BadRequest.
	Fail func(f Failure) (Body, bool)

	// FailLate is a stream that begins with the pieces of a script and ends in an error
	// which is part of the stream. Nil, or false: there is no such thing.
	FailLate func(s Script, f Failure) (Body, bool)

	// Noise are parts that a server may send between any two of a stream and that a
	// client has to pass over: keep-alives, events of a kind that it does not know. For
	// a text/event-stream the suite adds comments and empty lines of its own.
	Noise [][]byte

	Lacks []Feature // that the format does not have
}

// A Feature is something that not every format can express.
type Feature string

// The features.
const (
	ToolIDs      Feature = "ids of tool calls"                 // lacking: ids are made up, and results name their tool only
	ResultErrors Feature = "a mark on failed tool results"     // lacking: their text says so
	SchemaNames  Feature = "a name for a schema"               // lacking: it is dropped
	Schemas      Feature = "schema output"                     // lacking: the request has the schema in words
	CachedTokens Feature = "a count of cached tokens"          // lacking: Cached stays 0
	RetryAfter   Feature = "a wait with an error"              // lacking: RetryAfter stays 0
	Usage        Feature = "a count of tokens"                 // lacking: it is estimated
	Refusals     Feature = "a finish for a refused reply"      // lacking: the suite scripts none
	Served       Feature = "the name of the model that serves" // lacking: Served stays empty
	Temperature  Feature = "a temperature"                     // lacking: it is left out
	Choices      Feature = "tools required and tools none"     // lacking: they are left out
)

// A Script is what a model is to reply.
type Script struct {
	Pieces []string // of the text, each of which a stream sends as one; none of them is empty
	Calls  []llm.ToolCall
	Finish llm.Finish
	Usage  assay.Usage // InputTokens counts cached ones too; Calls is 0
	Cached int
	Served string

	// Schema says that the request had one: the pieces make up JSON that follows it.
	// SchemaName is its name; empty: that of the suite's own.
	Schema     bool
	SchemaName string
}

// A Failure is an error that a server is to report.
type Failure struct {
	Kind       llm.ErrorKind
	Message    string        // the vendor's words, put where the format has its own
	RetryAfter time.Duration // whole seconds; 0: the server does not say
}

// A Body is what a server sends.
type Body struct {
	Status int // 0: 200
	Header http.Header
	Type   string // Content-Type

	// Parts are sent one after the other: the events of a stream, the one document of
	// another reply.
	Parts [][]byte
}

// Bytes returns the parts as one.
func (b Body) Bytes() []byte {
	var all []byte
	for _, part := range b.Parts {
		all = append(all, part...)
	}
	return all
}

// TestModel holds a provider to the contract of llm.Model, whatever its server
// sends: replies asked for whole and as streams, from a real server on loopback.
// It must not run beside other tests, for it counts goroutines.
func TestModel(t *testing.T, w Wire) {
	for _, name := range []string{"whole", "stream"} {
		t.Run(name, func(t *testing.T) {
			s := suite{Wire: w, stream: name == "stream"}
			t.Run("requests", s.testRequests)
			t.Run("replies", s.testReplies)
			t.Run("failures", s.testFailures)
			t.Run("secrets", s.testSecrets)
			t.Run("ends", s.testEnds)
			t.Run("hostile", s.testHostile)
		})
	}
}
