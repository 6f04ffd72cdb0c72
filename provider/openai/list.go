package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/assay-rag/assay/llm"
)

// A modelList is the reply to a request for the models.
//
// Sources: OpenAI, API reference, "List models"; for windows: llama.cpp, tools/server/README.md
// (meta, whose n_ctx is set when the server starts); vLLM, ModelCard (max_model_len); OpenRouter,
// "List available models" (context_length, top_provider); LM Studio, "REST API v0"
// (loaded_context_length); Groq, API reference, "List models" (context_window).
type modelList struct {
	Data []struct {
		ID   string `json:"id"`
		Meta struct {
			Window number `json:"n_ctx"`
		} `json:"meta"`
		MaxModelLen   number `json:"max_model_len"`
		Loaded        number `json:"loaded_context_length"`
		ContextLength number `json:"context_length"`
		ContextWindow number `json:"context_window"`
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
func (p *Provider) List(ctx context.Context) ([]llm.Listed, error) {
	var list modelList
	err := p.client.JSON(ctx, http.MethodGet, p.url("models", ""), nil, &list)
	if err == nil && list.Error != nil {
		err = list.Error.fail(&p.client)
	}
	if err == nil && list.Data == nil {
		err = p.client.Fail(llm.BadReply, "the reply is not a list of models")
	}
	if err != nil {
		return nil, fmt.Errorf("list the models of %s: %w", p.c.Name, err)
	}
	models := make([]llm.Listed, 0, len(list.Data))
	for _, m := range list.Data {
		models = append(models, llm.Listed{Name: m.ID, Facts: llm.Facts{
			Window:    int(cmp.Or(m.Meta.Window, m.MaxModelLen, m.Loaded, m.ContextLength, m.ContextWindow)),
			MaxOutput: int(m.Top.MaxOutput),
		}})
	}
	return models, nil
}

// OllamaWindow is the smallest default of Ollama's window. Ollama truncates longer input silently.
//
// Source: Ollama, "Context length": 4k, 32k or 256k tokens, by the memory of the graphics card.
const OllamaWindow = 4096

// Window asks a server for the window of a model by the paths of llama.cpp and Ollama, which may
// not list it. A model of Ollama's has the window with which it is loaded, or else its parameter
// num_ctx, or else OllamaWindow. The result is 0 if the server has none of these paths.
//
// Sources: llama.cpp, tools/server/README.md, GET /props; Ollama, API, GET /api/ps and POST
// /api/show.
func (p *Provider) Window(ctx context.Context, model string) int {
	root := *p.base
	root.Path = strings.TrimSuffix(root.Path, "/v1")
	get := func(method, path string, in, out any) bool {
		u := root.JoinPath(path)
		if method == http.MethodGet && path == "props" {
			u.RawQuery = url.Values{"model": {model}}.Encode() // llama.cpp serves several as a router
		}
		return p.client.JSON(ctx, method, u.String(), in, out) == nil
	}
	var props struct {
		Settings struct {
			Window number `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if get(http.MethodGet, "props", nil, &props) && props.Settings.Window > 0 {
		return int(props.Settings.Window)
	}
	var loaded struct {
		Models []struct {
			Name   string `json:"name"`
			Window number `json:"context_length"`
		} `json:"models"`
	}
	if get(http.MethodGet, "api/ps", nil, &loaded) {
		for _, m := range loaded.Models {
			if m.Window > 0 && strings.TrimSuffix(m.Name, ":latest") == strings.TrimSuffix(model, ":latest") {
				return int(m.Window)
			}
		}
	}
	var shown struct {
		Parameters *string        `json:"parameters"` // lines of a name and a value
		Details    map[string]any `json:"details"`
	}
	if !get(http.MethodPost, "api/show", map[string]string{"model": model}, &shown) || shown.Parameters == nil && shown.Details == nil {
		return 0
	}
	if shown.Parameters != nil {
		for line := range strings.Lines(*shown.Parameters) {
			if f := strings.Fields(line); len(f) == 2 && f[0] == "num_ctx" {
				if n, err := strconv.Atoi(f[1]); err == nil && n > 0 {
					return n
				}
			}
		}
	}
	return OllamaWindow
}
