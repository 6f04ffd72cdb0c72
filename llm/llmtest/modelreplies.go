package llmtest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/llm"
)

var someUsage = assay.Usage{InputTokens: 120, OutputTokens: 17}

// story returns a reply of text.
func story() Script {
	return Script{
		Pieces: []string{"Five days", " may be ", "carried — ", "漢字 😀", "\n\t\"over\" ", "\\u0041 <&> ", "data: ", "\u2028", "[1", "]", ".\r\n", "\nEnd."},
		Finish: llm.FinishStop, Usage: someUsage, Cached: 64, Served: "served-model-1",
	}
}

// errands returns a reply of text and parallel tool calls.
func errands() Script {
	return Script{
		Pieces: []string{"I look ", "it up."},
		Calls: []llm.ToolCall{
			{ID: "call_a", Name: "search", Arguments: `{"query":"carry over","limit":3}`},
			{ID: "call_b", Name: "search", Arguments: `{"query":"漢字 \"<&>\" 😀\n"}`},
			{ID: "call_c", Name: "open_document", Arguments: `{}`},
		},
		Finish: llm.FinishTools, Usage: someUsage, Served: "served-model-1",
	}
}

// want returns the expected response for a script, as far as the format can express it.
func (s suite) want(script Script) llm.Response {
	r := llm.Response{Text: strings.Join(script.Pieces, ""), Calls: script.Calls, Finish: script.Finish, Served: script.Served, Usage: script.Usage, Cached: script.Cached}
	r.Usage.Calls = 1
	if s.lacks(CachedTokens) {
		r.Cached = 0
	}
	if s.lacks(Served) {
		r.Served = ""
	}
	return r
}

// differs returns the differences between a response and the wanted one. It ignores identifiers
// that the provider generated and tokens that it estimated.
func (s suite) differs(want, got llm.Response) string {
	if got.Estimated && s.lacks(Usage) {
		want.Usage, want.Cached, want.Estimated = got.Usage, got.Cached, true
	}
	made := cmp.FilterPath(func(p cmp.Path) bool { return s.lacks(ToolIDs) && p.Last().String() == ".ID" }, cmp.Ignore())
	arguments := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Arguments" },
		cmp.Comparer(func(a, b string) bool { return canonical([]byte(a)) == canonical([]byte(b)) }))
	return cmp.Diff(want, got, cmpopts.EquateEmpty(), made, arguments)
}

// testReplies checks that replies are read completely.
func (s suite) testReplies(t *testing.T) {
	length := story()
	length.Finish = llm.FinishLength
	refused := story()
	refused.Pieces, refused.Finish = []string{"I cannot ", "help with that."}, llm.FinishRefused
	silent := errands()
	silent.Pieces, silent.Calls = nil, silent.Calls[:1]
	long := story()
	long.Pieces = []string{"begin ", strings.Repeat("a long piece — ", 60_000), "end"}
	scripts := map[string]Script{
		"text": story(), "at the limit": length, "calls": errands(), "nothing but a call": silent, "a long piece": long,
		"no text": {Finish: llm.FinishStop, Usage: someUsage},
	}
	if !s.lacks(Refusals) {
		scripts["refused"] = refused
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			req := conversation()
			o := s.exchange(t, s.reply(script), req)
			if o.err != nil {
				t.Fatal(o.err)
			}
			if diff := s.differs(s.want(script), o.response); diff != "" {
				t.Errorf("the response (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("schema", s.testSchema)
	t.Run("no count of tokens", s.testUncounted)
	t.Run("ids twice", s.testTwins)
	t.Run("nobody listens", s.testUnheard)
	t.Run("at once", s.testConcurrent)
	if s.stream {
		t.Run("as it arrives", s.testArrival)
		t.Run("framing", s.testFraming)
	}
}

// testSchema checks that the output for a schema is the text of the response, however the format
// expresses schemas.
func (s suite) testSchema(t *testing.T) {
	script := Script{Pieces: []string{`{"verdict":`, `"REVISE","rea`, `sons":["no source says <so>"]}`}, Finish: llm.FinishStop, Usage: someUsage, Schema: true}
	req := question()
	req.Schema = verdictSchema()
	o := s.exchange(t, s.reply(script), req)
	if o.err != nil {
		t.Fatal(o.err)
	}
	want := strings.Join(script.Pieces, "")
	if canonical([]byte(o.response.Text)) != canonical([]byte(want)) || len(o.response.Calls) > 0 || o.response.Finish != llm.FinishStop {
		t.Errorf("%v, want the text %s and finish stop", o, want)
	}
}

// testUncounted checks that tokens are estimated if the server does not report them.
func (s suite) testUncounted(t *testing.T) {
	script := story()
	script.Usage, script.Cached = assay.Usage{}, 0
	o := s.exchange(t, s.reply(script), conversation())
	if o.err != nil {
		t.Fatal(o.err)
	}
	if u := o.response.Usage; !o.response.Estimated || u.InputTokens < 20 || u.OutputTokens < 5 {
		t.Errorf("%+v, estimated: %v; want an estimate", u, o.response.Estimated)
	}
}

// testTwins checks that calls have distinct identifiers even if the server's do not.
func (s suite) testTwins(t *testing.T) {
	script := errands()
	for i := range script.Calls {
		script.Calls[i].ID = "call_same"
	}
	o := s.exchange(t, s.reply(script), conversation())
	if n := len(o.response.Calls); o.err == nil && n != len(script.Calls) || o.err != nil && o.kind() != llm.BadReply {
		t.Errorf("%v, want %d calls, or an error of the kind %q", o, len(script.Calls), llm.BadReply)
	}
}

// testUnheard checks that a reply is the same without a stream callback.
func (s suite) testUnheard(t *testing.T) {
	h := serve(t, s.reply(story()))
	r, err := s.open(t, h, Setup{}).Generate(bounded(t), question(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := s.differs(s.want(story()), r); diff != "" {
		t.Errorf("the response (-want +got):\n%s", diff)
	}
}

// testConcurrent checks that concurrent calls do not mix.
func (s suite) testConcurrent(t *testing.T) {
	h := serve(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		req := s.Request(t, r, body)
		script := story()
		script.Pieces = append([]string{req.Messages[0].Text}, script.Pieces...)
		s.reply(script)(w, r, body)
	})
	m, g := s.open(t, h, Setup{}), errgroup.Group{}
	for i := range 8 {
		g.Go(func() error {
			req := question()
			req.Messages[0].Text = fmt.Sprintf("question %d: ", i)
			o := ask(bounded(t), t, m, req)
			if !strings.HasPrefix(o.response.Text, req.Messages[0].Text) {
				return fmt.Errorf("%q got %v", req.Messages[0].Text, o)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

// testArrival checks that text is streamed before the rest of the reply has arrived. It runs in a
// bubble, in which a model that waits for the rest of the reply is a deadlock, which ends the wait
// at once.
func (s suite) testArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := make(chan struct{}, 100)
		slow := roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Body != nil {
				defer r.Body.Close()
			}
			b := s.Reply(story(), true)
			body, w := io.Pipe()
			go func() {
				defer w.Close()
				for i, part := range b.Parts {
					if i == len(b.Parts)*2/3 {
						select {
						case <-heard:
						case <-time.After(patience / 4):
							t.Error("two thirds of the stream are there, and nothing of it was handed on")
						}
					}
					if _, err := w.Write(part); err != nil {
						return
					}
				}
			}()
			return b.response(r, body), nil
		})
		m := s.Open(t, Setup{BaseURL: "http://127.0.0.1:1", HTTP: &http.Client{Transport: slow}, Stream: true})
		if _, err := m.Generate(bounded(t), question(), func(llm.Delta) { heard <- struct{}{} }); err != nil {
			t.Fatal(err)
		}
	})
}

// A roundTrip is a function as an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// testFraming checks that the meaning of a stream does not depend on how its bytes are split.
func (s suite) testFraming(t *testing.T) {
	for name, script := range map[string]Script{"text": story(), "calls": errands()} {
		body := s.Reply(script, true)
		variants := map[string]Body{
			"at once":      body.with(body.Bytes()),
			"byte by byte": body.with(eachByte(body.Bytes())...),
			"noise":        body.with(between(body.Parts, s.Noise)...),
		}
		if strings.HasPrefix(body.Type, "text/event-stream") {
			variants["comments"] = body.with(between(body.Parts, [][]byte{[]byte(": keep-alive\n\n"), []byte("\n"), []byte(":\n\n"), []byte("retry: 3000\n\n"), []byte("id: 7\n\n")})...)
			variants["carriage returns"] = body.replaced("\n", "\r\n")
			variants["no spaces"] = body.with(withoutSpaces(body.Parts)...)
		}
		for variant, body := range variants {
			t.Run(name+", "+variant, func(t *testing.T) {
				o := s.exchange(t, always(fixed(body)), conversation())
				if o.err != nil {
					t.Fatal(o.err)
				}
				if diff := s.differs(s.want(script), o.response); diff != "" {
					t.Errorf("the response (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func eachByte(data []byte) [][]byte {
	parts := make([][]byte, len(data))
	for i := range data {
		parts[i] = data[i : i+1]
	}
	return parts
}

// between returns parts with all of noise before each of them.
func between(parts, noise [][]byte) [][]byte {
	var out [][]byte
	for _, part := range parts {
		out = append(append(out, noise...), part)
	}
	return out
}

var fieldSpace = lazyregexp.New(`(?m)^(data|event|id): `)

// withoutSpaces removes the space after each field name, as servers may do.
func withoutSpaces(parts [][]byte) [][]byte {
	var out [][]byte
	for _, part := range parts {
		out = append(out, fieldSpace.ReplaceAll(part, []byte("$1:")))
	}
	return out
}
