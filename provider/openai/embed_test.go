package openai_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/embedded"
	"github.com/assay-rag/assay/provider/openai"
)

// A vectorServer is an embeddings server.
type vectorServer struct {
	base64   bool
	limit    int // largest text in bytes; 0: none
	requests []embedRequest
}

type embedRequest struct {
	Input      []string
	Model      string
	Encoding   string `json:"encoding_format"`
	Dimensions int
}

func (s *vectorServer) reply(t *testing.T) func(*http.Request, []byte) (int, string, string) {
	return func(_ *http.Request, body []byte) (int, string, string) {
		var r embedRequest
		if err := json.Unmarshal(body, &r); err != nil {
			t.Error(err)
		}
		s.requests = append(s.requests, r)
		var data []string
		for i, text := range r.Input {
			if s.limit > 0 && len(text) > s.limit {
				// Ollama, server/routes.go, of an input with truncate off.
				return 400, "application/json", `{"error":{"message":"the input length exceeds the context length","type":"api_error","param":null,"code":null}}`
			}
			v := new(llmtest.Hashing).Vector(text)
			if n := r.Dimensions; n > 0 {
				v = make(llm.Vector, n)
				v[len(text)%n] = 2
			}
			values, _ := json.Marshal(v) // finite numbers
			if s.base64 {
				raw := make([]byte, 4*len(v))
				for d, x := range v {
					binary.LittleEndian.PutUint32(raw[4*d:], math.Float32bits(x))
				}
				values = fmt.Appendf(nil, "%q", base64.StdEncoding.EncodeToString(raw))
			}
			data = append(data, fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":%s}`, i, values))
		}
		return 200, "application/json", `{"object":"list","data":[` + strings.Join(data, ",") + `],"usage":{"prompt_tokens":7,"total_tokens":7}}`
	}
}

func (s *vectorServer) open(t *testing.T, name string, c openai.EmbedConfig) llm.Embedder {
	t.Helper()
	e, err := provider(t, openai.Config{Name: "local", BaseURL: serve(t, s.reply(t))}).Embedder(t.Context(), name, c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestDimensions checks that the server is queried once for unknown dimensions.
func TestDimensions(t *testing.T) {
	native := len(new(llmtest.Hashing).Vector("a"))
	tests := []struct {
		name   string
		config openai.EmbedConfig
		want   string // the model's name
		asked  int    // requests at opening
		sent   int    // dimensions sent afterwards
	}{
		{"m", openai.EmbedConfig{}, fmt.Sprintf("local/m/%d", native), 1, 0},
		{"m", openai.EmbedConfig{Dimensions: native}, fmt.Sprintf("local/m/%d", native), 0, 0},
		{"m", openai.EmbedConfig{Dimensions: 5, Shorten: true}, "local/m/5", 0, 5},
		{"text-embedding-3-small", openai.EmbedConfig{Dimensions: 256}, "local/text-embedding-3-small/256", 0, 256},
		{"m", openai.EmbedConfig{Dimensions: native, QueryPrefix: "query: ", PassagePrefix: "passage: "}, fmt.Sprintf("local/m/%d/f1529947", native), 0, 0},
	}
	for _, test := range tests {
		t.Run(test.want, func(t *testing.T) {
			s := new(vectorServer)
			e := s.open(t, test.name, test.config)
			if e.Model() != test.want || len(s.requests) != test.asked {
				t.Errorf("%s after %d requests, want %s after %d", e.Model(), len(s.requests), test.want, test.asked)
			}
			if _, err := llm.Embed(t.Context(), e, llm.Query, []string{"a", ""}); err != nil {
				t.Fatal(err)
			}
			last := s.requests[len(s.requests)-1]
			want := embedRequest{Input: []string{test.config.QueryPrefix + "a", test.config.QueryPrefix}, Model: test.name, Encoding: "float", Dimensions: test.sent}
			if want.Input[1] == "" {
				want.Input[1] = " "
			}
			if diff := cmp.Diff(want, last); diff != "" {
				t.Errorf("the request (-want +got):\n%s", diff)
			}
		})
	}
	s := new(vectorServer)
	e := s.open(t, "text-embedding-3-small", openai.EmbedConfig{})
	if want := "local/text-embedding-3-small/1536"; e.Model() != want || len(s.requests) != 0 {
		t.Errorf("%s after %d requests, want %s after none", e.Model(), len(s.requests), want)
	}
	if e.(llm.TokenCounter).MaxTokens() != 8191 {
		t.Error("the limit of OpenAI's is not known")
	}
	if _, err := e.Embed(t.Context(), llm.Passage, []string{"a"}); err == nil {
		t.Error("vectors of other dimensions are taken")
	}
	if _, err := provider(t, openai.Config{}).Embedder(t.Context(), "m", openai.EmbedConfig{Batch: -1}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("a negative limit: %v", err)
	}
}

func TestBase64(t *testing.T) {
	s := &vectorServer{base64: true}
	e := s.open(t, "m", openai.EmbedConfig{})
	made, err := llm.Embed(t.Context(), e, llm.Passage, []string{"some words"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(new(llmtest.Hashing).Vector("some words"), made[0]); diff != "" {
		t.Errorf("the vector (-want +got):\n%s", diff)
	}
}

// TestServerKnowsBetter checks that a text that only the server detects as too long is identified
// in its batch, and that the vectors before it are kept.
func TestServerKnowsBetter(t *testing.T) {
	s := &vectorServer{limit: 30}
	e := s.open(t, "m", openai.EmbedConfig{})
	texts := []string{"one", "two", "three", "four", "a text that is longer than the server likes", "six"}
	made, err := e.Embed(t.Context(), llm.Passage, texts)
	long, ok := errors.AsType[*llm.TooLongError](err)
	if !ok || long.Text != 4 || long.Tokens <= long.Limit || len(made) != 4 {
		t.Fatalf("%d vectors, %v; want 4 and that text 4 is too long", len(made), err)
	}
	if failed, ok := errors.AsType[*llm.Error](err); !ok || !strings.Contains(failed.Message, "input length") {
		t.Errorf("%v does not say what the server said", err)
	}
	for i, v := range made {
		if diff := cmp.Diff(new(llmtest.Hashing).Vector(texts[i]), v); diff != "" {
			t.Errorf("vector %d (-want +got):\n%s", i, diff)
		}
	}
}

// TestRequestsAreBoundedAndMetered checks that requests are also limited in bytes, and that their
// usage is reported.
func TestRequestsAreBoundedAndMetered(t *testing.T) {
	s := new(vectorServer)
	e := s.open(t, "m", openai.EmbedConfig{MaxTokens: 1 << 20})
	meter := llm.NewMeter(assay.Usage{Calls: 2})
	big := strings.Repeat("word ", 30_000)
	made, err := e.Embed(llm.WithMeter(t.Context(), meter), llm.Passage, []string{big, big, big, big})
	if !errors.Is(err, assay.ErrBudget) || len(made) != 2 {
		t.Fatalf("%d vectors, %v; want 2 and that the budget is spent", len(made), err)
	}
	if got := meter.Spent(); got.Calls != 2 || got.InputTokens != 14 {
		t.Errorf("%+v was reported", got)
	}
}

// TestUnreachableIsNotCounted checks that a request that did not reach a server is not counted.
func TestUnreachableIsNotCounted(t *testing.T) {
	e, err := provider(t, openai.Config{BaseURL: "http://127.0.0.1:1"}).Embedder(t.Context(), "m", openai.EmbedConfig{Dimensions: 3})
	if err != nil {
		t.Fatal(err)
	}
	meter := llm.NewMeter(assay.Usage{})
	_, err = e.Embed(llm.WithMeter(t.Context(), meter), llm.Query, []string{"a"})
	if failed, ok := errors.AsType[*llm.Error](err); !ok || failed.Kind != llm.Unreachable {
		t.Errorf("%v, want an error of the kind %q", err, llm.Unreachable)
	}
	if diff := cmp.Diff(assay.Usage{}, meter.Spent()); diff != "" {
		t.Errorf("spent (-want +got):\n%s", diff)
	}
}

// TestPassagesAreSentOnce checks that long passages are windowed by the token counter, so that each
// text is sent once.
func TestPassagesAreSentOnce(t *testing.T) {
	s := new(vectorServer)
	e := s.open(t, "m", openai.EmbedConfig{MaxTokens: 100})
	passage := assay.Passage{Title: "Title"}
	for i := range 300 {
		passage.Text += fmt.Sprintf("word %d of a long text ", i)
	}
	s.requests = nil
	if _, err := llm.EmbedPassages(t.Context(), e, []assay.Passage{passage, {Text: "short"}}); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, r := range s.requests {
		for _, text := range r.Input {
			seen[text]++
			if n := e.(llm.TokenCounter).Tokens(text); n > 100 {
				t.Errorf("a window of %d tokens", n)
			}
		}
	}
	if len(seen) < 10 {
		t.Errorf("%d windows", len(seen))
	}
	for text, n := range seen {
		if n > 1 {
			t.Errorf("%.30q was sent %d times", text, n)
		}
	}
}

// TestEstimateIsCautious checks that the token estimate exceeds the count of a WordPiece
// vocabulary, but is far below one per byte.
func TestEstimateIsCautious(t *testing.T) {
	encoder, err := embedded.Open()
	if err != nil {
		t.Fatal(err)
	}
	exact := any(encoder).(llm.TokenCounter)
	e := new(vectorServer).open(t, "m", openai.EmbedConfig{Dimensions: 3})
	counter := e.(llm.TokenCounter)
	texts := map[string]string{
		"prose":       "The server drains its connections before it stops, which may take up to thirty seconds; afterwards the operator is told.",
		"German":      "Die Übertragung von Urlaubstagen ins Folgejahr ist ausgeschlossen, sofern keine dringenden betrieblichen Gründe vorliegen.",
		"code":        "func (c *Client) call(ctx context.Context, method, url string, in any) error {\n\tif err != nil {\n\t\treturn fmt.Errorf(\"%w: %d\", err, 0x7f)\n\t}\n}",
		"numbers":     "2026-11-20T13:45:00Z 3.14159 1,000,000 192.168.0.1 +49 30 1234567",
		"identifiers": "getUserByIdOrThrow XMLHttpRequest snake_case_name SHOUTING_CONSTANT kebab-case-name",
		"a key":       "AKfycbx3Zq9LmN0pQrStUvWxYzAbCdEfGhIjKlMnOpQrStUvWxYz1234567890",
		"hex":         "7f3a9c51d2e84b06af91c0d3e5b7a2649f8e1d0c",
		"chemistry":   "N-methyl-D-aspartate, dichlorodiphenyltrichloroethane and 4-hydroxyphenylpyruvate",
		"Chinese":     "员工每年可以结转最多五天的年假。",
		"Russian":     "Сотрудники могут перенести до пяти дней отпуска.",
		"Hindi":       "कर्मचारी पाँच दिन तक की छुट्टी आगे ले जा सकते हैं।",
		"emoji":       "😀😃😄 👩‍👩‍👧‍👦",
		"signs":       "!!! ??? --- === ### ((())) [[]] {} <> |||",
		"nothing":     "",
	}
	for name, text := range texts {
		got, want := counter.Tokens(text), exact.Tokens(text)
		if got < want {
			t.Errorf("%s: estimated at %d tokens, has %d", name, got, want)
		}
		if got > 2*len(text)+4 {
			t.Errorf("%s: estimated at %d tokens, of %d bytes", name, got, len(text))
		}
		if name == "prose" && got > 2*want {
			t.Errorf("%s: estimated at %d tokens, has %d", name, got, want)
		}
	}
}
