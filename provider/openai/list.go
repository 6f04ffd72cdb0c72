package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/assay-rag/assay/llm"
)

// A Listed is a model offered by a server, with the server's information on it.
type Listed struct {
	Name      string // for Provider.Model
	Window    int    // tokens of request and reply together; 0: unknown
	MaxOutput int    // tokens of a reply; 0: unknown
}

// A modelList is the reply to a request for the models.
//
// Sources: OpenAI, API reference, "List models"; for windows: llama.cpp, tools/server/README.md
// (meta, whose n_ctx is set when the server starts); vLLM, ModelCard (max_model_len); OpenRouter,
// "List available models" (context_length, top_provider); LM Studio, "REST API v0"
// (loaded_context_length).
type modelList struct {
	Data []struct {
		ID   string `json:"id"`
		Meta struct {
			Window number `json:"n_ctx"`
		} `json:"meta"`
		MaxModelLen   number `json:"max_model_len"`
		Loaded        number `json:"loaded_context_length"`
		ContextLength number `json:"context_length"`
		Top           struct {
			MaxOutput number `json:"max_completion_tokens"`
		} `json:"top_provider"`
	} `json:"data"`
	Error *apiError `json:"error"`
}

// number is a count of tokens. Any other JSON value counts as unknown.
type number int

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(data []byte) error {
	var i int
	if json.Unmarshal(data, &i) == nil && i > 0 {
		*n = number(i)
	}
	return nil
}

// List returns the models offered by the server, in its order.
func (p *Provider) List(ctx context.Context) ([]Listed, error) {
	var list modelList
	err := p.client.JSON(ctx, http.MethodGet, p.url("models", ""), nil, &list)
	if err == nil && list.Error != nil {
		err = list.Error.fail(&p.client)
	}
	if err == nil && list.Data == nil {
		err = p.client.Fail(llm.BadReply, "the reply is no list of models")
	}
	if err != nil {
		return nil, fmt.Errorf("list the models of %s: %w", p.c.Name, err)
	}
	models := make([]Listed, 0, len(list.Data))
	for _, m := range list.Data {
		models = append(models, Listed{
			Name:      m.ID,
			Window:    int(cmp.Or(m.Meta.Window, m.MaxModelLen, m.Loaded, m.ContextLength)),
			MaxOutput: int(m.Top.MaxOutput),
		})
	}
	return models, nil
}

// Models returns the names of the models offered by the server, in its order.
func (p *Provider) Models(ctx context.Context) ([]string, error) {
	models, err := p.List(ctx)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(models))
	for i, m := range models {
		names[i] = m.Name
	}
	return names, nil
}
