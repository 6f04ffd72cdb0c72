package llmtest

import (
	"net/http"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
)

// Canary is the credential with which a suite opens a provider. It may appear in a header of a
// request to the intended server and nowhere else.
const Canary = "sk-canary-7f3a9c51d2e84b06"

// A Setup configures a provider that a suite opens.
type Setup struct {
	BaseURL  string       // of the server; the provider appends the paths of its format
	HTTP     *http.Client // the only client that may be used
	Stream   bool         // request replies as streams
	Idle     time.Duration
	MaxBytes int64 // Idle and MaxBytes are as in wire.Client; 0 means the default
}

// A Wire is a provider with the server side of its format, for [TestModel]. The server side is
// written from the vendor's documentation, not from what the provider happens to read.
type Wire struct {
	// Open opens a model with Canary as each of its credentials. The model makes one request for
	// each call.
	Open func(t testing.TB, s Setup) llm.Model

	// Streams reports whether a request asks for its reply as a stream.
	Streams func(r *http.Request, body []byte) bool

	// Request decodes a request. Fields that the format cannot express stay zero and are listed in
	// Lacks.
	Request func(t testing.TB, r *http.Request, body []byte) llm.Request

	// Reply returns a server's reply for a script.
	Reply func(s Script, stream bool) Body

	// Fail returns a server's reply for a failure. It returns false if the vendor documents no such
	// error. Every format has RateLimited, ServerError, BadKey and BadRequest.
	Fail func(f Failure) (Body, bool)

	// FailLate returns a stream that begins with the pieces of a script and ends in an error event
	// within the stream. It is nil or returns false if the format has no such event.
	FailLate func(s Script, f Failure) (Body, bool)

	// Noise contains parts that a server may send between any two parts of a stream and that a
	// client has to skip, such as keep-alives and events of unknown types. For a text/event-stream
	// the suite adds comments and empty lines of its own.
	Noise [][]byte

	Lacks []Feature // missing from the format
}

// A Feature is a capability that some formats lack.
type Feature string

// The features. Each comment gives the effect of lacking it.
const (
	ToolIDs      Feature = "ids of tool calls"                 // lacking: ids are generated, and results carry only the tool's name
	ResultErrors Feature = "a mark on failed tool results"     // lacking: the text of the result reports the failure
	SchemaNames  Feature = "a name for a schema"               // lacking: it is dropped
	Schemas      Feature = "schema output"                     // lacking: the request describes the schema in words
	CachedTokens Feature = "a count of cached tokens"          // lacking: Cached stays 0
	RetryAfter   Feature = "a wait with an error"              // lacking: RetryAfter stays 0
	Usage        Feature = "a count of tokens"                 // lacking: it is estimated
	Refusals     Feature = "a finish for a refused reply"      // lacking: the suite has no such script
	Served       Feature = "the name of the model that serves" // lacking: Served stays empty
	Temperature  Feature = "a temperature"                     // lacking: it is omitted
	Images       Feature = "images"                            // lacking: the suite sends none
	Choices      Feature = "tools required and tools none"     // lacking: they are omitted
)

// A Script describes a model's reply.
type Script struct {
	Pieces []string // of the text, none empty; a stream sends each as one event
	Calls  []llm.ToolCall
	Finish llm.Finish
	Usage  assay.Usage // InputTokens includes cached ones; Calls is 0
	Cached int
	Served string

	// Schema reports whether the request had a schema, which the JSON in Pieces follows. SchemaName
	// is its name; "" means that of the suite's own schema.
	Schema     bool
	SchemaName string
}

// A Failure describes an error that a server reports.
type Failure struct {
	Kind       llm.ErrorKind
	Message    string        // the vendor's message, in the format's field for it
	RetryAfter time.Duration // whole seconds; 0 means unspecified
}

// A Body is a server's reply.
type Body struct {
	Status int // 0 means 200
	Header http.Header
	Type   string // Content-Type

	// Parts are sent one after the other: the events of a stream, or the single document of another
	// reply.
	Parts [][]byte
}

// Bytes returns the concatenated parts.
func (b Body) Bytes() []byte {
	var all []byte
	for _, part := range b.Parts {
		all = append(all, part...)
	}
	return all
}

// TestModel checks a provider against the contract of llm.Model for any behaviour of its server. It
// requests replies whole and as streams, from a real server on loopback. It must not run in
// parallel with other tests, because it counts goroutines.
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
