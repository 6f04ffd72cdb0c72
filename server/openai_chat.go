package server

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/strategy"
)

// A chatRequest is the body of POST /v1/chat/completions.
type chatRequest struct {
	Model           string            `json:"model"`
	Messages        []json.RawMessage `json:"messages"`
	Stream          bool              `json:"stream,omitempty"`
	Store           bool              `json:"store,omitempty"`
	ReasoningEffort string            `json:"reasoning_effort,omitempty"`
	StreamOptions   struct {
		IncludeUsage bool `json:"include_usage,omitempty"`
	} `json:"stream_options,omitzero"`

	skipped []string // names of parameters without effect
}

// decodeBody implements bodyDecoder. See decodeParameters.
func (r *chatRequest) decodeBody(data []byte) (err error) {
	type plain chatRequest
	r.skipped, err = decodeParameters(data, chatParameters, (*plain)(r))
	return err
}

type chatIn struct {
	Key  string      `header:"Idempotency-Key"`
	Body chatRequest `body:"application/json"`
}

// request returns the request for the engine.
func (r *chatRequest) request() (engine.Request, error) {
	c, err := conversationOf("messages", r.Messages)
	if err != nil {
		return engine.Request{}, err
	}
	r.skipped = append(r.skipped, c.skipped...)
	req := engine.Request{Question: c.question, History: c.history}
	if err := askAs(&req, r.Model, "reasoning_effort", r.ReasoningEffort); err != nil {
		return engine.Request{}, err
	}
	return req, nil
}

// askAs sets the parts of a request that a model's name and an effort mean.
func askAs(req *engine.Request, model, param, effort string) error {
	m, err := parseModel(model)
	if err != nil {
		return err
	}
	mode, err := reasoningEffort(param, effort)
	if err != nil {
		return err
	}
	m.effort = cmp.Or(m.effort, strategy.Mode(mode))
	m.narrow(req)
	return nil
}

// chat answers the last message of a chat.
func chat(x *exchange, in chatIn) error {
	r := in.Body
	req, err := r.request()
	if err != nil {
		return err
	}
	req.IdempotencyKey = in.Key
	id, err := x.begin(req)
	if err != nil {
		return err
	}
	if !r.Store && in.Key == "" {
		defer x.abandon(id)
	}
	c := chatReply{ID: "chatcmpl-" + id, Created: time.Now().Unix(), Model: r.Model}
	if r.Stream {
		return c.stream(x, id, r)
	}
	answer, err := final(x.session.Follow(x.r.Context(), id, -1))
	if err != nil {
		return err
	}
	return x.reply(c.completion(x, answer, r.skipped))
}

// A chatReply holds the members common to a chat completion and its chunks.
type chatReply struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
}

// A chatCompletion is the answer to a chat.
type chatCompletion struct {
	chatReply
	Choices  []chatChoice      `json:"choices"`
	Usage    chatUsage         `json:"usage"`
	Metadata map[string]string `json:"metadata"`
}

// A chatChoice is the only choice of a chat completion.
type chatChoice struct {
	Index        int             `json:"index"`
	Message      chatAnswer      `json:"message"`
	LogProbs     json.RawMessage `json:"logprobs"`
	FinishReason string          `json:"finish_reason"`
}

// A chatAnswer is the assistant's message.
type chatAnswer struct {
	Role        string           `json:"role"`
	Content     string           `json:"content"`
	Refusal     *string          `json:"refusal"`
	Annotations []chatAnnotation `json:"annotations"`
}

// A chatAnnotation is the source of a part of the content.
type chatAnnotation struct {
	Type        string      `json:"type"`
	URLCitation urlCitation `json:"url_citation"`
}

// A chatUsage counts the tokens of a run's models.
type chatUsage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

func chatUsageOf(u assay.Usage) chatUsage {
	return chatUsage{u.InputTokens, u.OutputTokens, u.InputTokens + u.OutputTokens}
}

func chatAnnotations(x *exchange, a assay.Answer) []chatAnnotation {
	list := []chatAnnotation{}
	for _, c := range x.urlCitations(a) {
		list = append(list, chatAnnotation{"url_citation", c})
	}
	return list
}

func (c chatReply) completion(x *exchange, a assay.Answer, skipped []string) chatCompletion {
	c.Object = "chat.completion"
	message := chatAnswer{Role: "assistant", Content: openaiText(a), Annotations: chatAnnotations(x, a)}
	return chatCompletion{
		chatReply: c, Choices: []chatChoice{{Message: message, FinishReason: finishReason(a)}},
		Usage: chatUsageOf(a.Usage), Metadata: metadataOf(a, skipped),
	}
}

// A chatChunk is a part of a chat completion.
type chatChunk struct {
	chatReply
	Choices  []chatChunkChoice `json:"choices"`
	Usage    *chatUsage        `json:"usage,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

type chatChunkChoice struct {
	Index        int       `json:"index"`
	Delta        chatDelta `json:"delta"`
	FinishReason *string   `json:"finish_reason"`
}

// A chatDelta is the part of the message in one chunk.
type chatDelta struct {
	Role        string           `json:"role,omitempty"`
	Content     *string          `json:"content,omitempty"`
	Reasoning   string           `json:"reasoning_content,omitempty"`
	Annotations []chatAnnotation `json:"annotations,omitempty"`
}

// stream sends a completion in chunks: first the role, then the progress as reasoning, and when the
// answer is verified its text and sources.
func (c chatReply) stream(x *exchange, id string, r chatRequest) error {
	c.Object = "chat.completion.chunk"
	s := x.openOpenAI()
	defer s.out.stop()
	send := func(d chatDelta) error {
		return s.data(chatChunk{chatReply: c, Choices: []chatChunkChoice{{Delta: d}}})
	}
	if err := send(chatDelta{Role: "assistant", Content: new(string)}); err != nil {
		return err
	}
	answer, err := s.follow(id, func(ev engine.Event) error {
		if text := progressOf(ev); text != "" {
			return send(chatDelta{Reasoning: text + "\n"})
		}
		return nil
	})
	if err != nil {
		return s.fail(err)
	}
	for _, piece := range pieces(openaiText(answer)) {
		if err := send(chatDelta{Content: &piece}); err != nil {
			return err
		}
	}
	if annotations := chatAnnotations(x, answer); len(annotations) > 0 {
		if err := send(chatDelta{Annotations: annotations}); err != nil {
			return err
		}
	}
	reason := finishReason(answer)
	last := chatChunk{chatReply: c, Choices: []chatChunkChoice{{FinishReason: &reason}}, Metadata: metadataOf(answer, r.skipped)}
	if err := s.data(last); err != nil {
		return err
	}
	if r.StreamOptions.IncludeUsage {
		usage := chatUsageOf(answer.Usage)
		if err := s.data(chatChunk{chatReply: c, Choices: []chatChunkChoice{}, Usage: &usage}); err != nil {
			return err
		}
	}
	return s.write("data: [DONE]\n\n")
}

// fail ends a stream with an error. There is no [DONE] then.
func (s openaiStream) fail(err error) error {
	_, e := s.x.openaiErrorOf(err)
	return s.data(openaiFailure{e}) // fails if the client is gone
}
