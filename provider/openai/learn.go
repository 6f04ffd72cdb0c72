package openai

import (
	"errors"
	"net/http"
	"strings"

	"github.com/assay-rag/assay/llm"
)

// optional are the parameters without which a request asks the same. Which of them a
// model takes depends on its generation and on its server's, and its name may not
// say which that is: Azure's deployments have names of their own.
var optional = []string{"max_completion_tokens", "max_tokens", "temperature", "reasoning_effort", "stream_options"}

// takes reports whether the model is not known to refuse a parameter.
func (m *model) takes(parameter string) bool {
	m.p.mu.Lock()
	defer m.p.mu.Unlock()
	return !m.p.without[m.name][parameter]
}

// refuses returns the optional parameter that an error complains of, if it does.
//
// Source: OpenAI's replies to such requests: "Unsupported parameter: 'max_tokens' is
// not supported with this model. Use 'max_completion_tokens' instead." with the code
// unsupported_parameter, "Unsupported value: 'temperature' does not support 0 with
// this model." with unsupported_value, and the parameter in param; Azure's older
// versions: "Unrecognized request argument supplied: stream_options".
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

// learn remembers the parameter that err says the model does not take. The error
// becomes a temporary one: the next attempt goes without it.
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
	e.Message += " (from now on it is left out)"
	return e
}
