package openai

import (
	"errors"
	"net/http"
	"strings"

	"github.com/assay-rag/assay/llm"
)

// optional lists the parameters that may be omitted. A model's support for them depends on its
// generation and on its server, and may not be evident from its name: Azure's deployments have
// arbitrary names.
var optional = []string{"max_completion_tokens", "max_tokens", "temperature", "reasoning_effort", "stream_options"}

// takes reports whether the model is not known to reject a parameter.
func (m *model) takes(parameter string) bool {
	m.p.mu.Lock()
	defer m.p.mu.Unlock()
	return !m.p.without[m.name][parameter]
}

// refuses returns the optional parameter that an error message rejects, or "".
//
// Source: OpenAI's replies to such requests: "Unsupported parameter: 'max_tokens' is not supported
// with this model. Use 'max_completion_tokens' instead." with the code unsupported_parameter,
// "Unsupported value: 'temperature' does not support 0 with this model." with unsupported_value,
// and the parameter in param; Azure's older versions: "Unrecognized request argument supplied:
// stream_options".
func refuses(message string) string {
	message = strings.ToLower(message)
	for _, words := range []string{"unsupported parameter: ", "unsupported value: ", "unrecognized request argument supplied: "} {
		_, rest, found := strings.Cut(message, words)
		if !found {
			continue
		}
		rest = strings.TrimLeft(rest, "'`\"")
		for _, parameter := range optional {
			if strings.HasPrefix(rest, parameter) || parameter == "reasoning_effort" && strings.HasPrefix(rest, "reasoning.effort") {
				return parameter
			}
		}
	}
	return ""
}

// learn records the parameter that the model rejects according to err. It then makes the error
// temporary: the next attempt omits the parameter.
func (m *model) learn(err error) error {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Status != http.StatusBadRequest {
		return err
	}
	parameter := refuses(e.Message)
	if parameter == "" || !m.takes(parameter) {
		return err
	}
	m.p.mu.Lock()
	defer m.p.mu.Unlock()
	if m.p.without[m.name] == nil {
		m.p.without[m.name] = map[string]bool{}
	}
	m.p.without[m.name][parameter] = true
	e.Kind = llm.ServerError
	e.Message += " (omitted from now on)"
	return e
}
