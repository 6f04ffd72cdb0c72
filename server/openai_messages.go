package server

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/assay-rag/assay"
)

// A conversation is the question of a request with the turns before it.
type conversation struct {
	question string
	history  []assay.Turn
	skipped  []string // the messages without effect, as in "messages[0] (system)"
}

// A chatMessage is one message of a chat, or one item of an input.
type chatMessage struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// contentTypes are the types of the parts of a content that are text.
var contentTypes = map[string]bool{"text": true, "input_text": true, "output_text": true, "refusal": true}

// conversationOf reads a list of messages. The question is the text of the last one, which must be the
// user's. Texts of systems and developers, and those of tools, are skipped: they cannot change how
// an answer is found and verified. param is the name of the list.
func conversationOf(param string, list []json.RawMessage) (conversation, error) {
	var c conversation
	last := "" // role of the last message that is not skipped for good
	for i, data := range list {
		at := fmt.Sprintf("%s[%d]", param, i)
		m, role, err := readMessage(at, data)
		if err != nil {
			return conversation{}, err
		}
		if role != "user" && role != "assistant" {
			c.skipped = append(c.skipped, fmt.Sprintf("%s (%s)", at, role))
			if role != "system" && role != "developer" {
				last = role
			}
			continue
		}
		text, err := textOf(at+".content", m.Content)
		if err != nil {
			return conversation{}, err
		}
		last = role
		c.add(role, text)
	}
	if last != "user" {
		return conversation{}, invalidParameter(param, "the last message must be the user's, with the question")
	}
	n := len(c.history) - 1
	c.question, c.history = c.history[n].Question, c.history[:n]
	if strings.TrimSpace(c.question) == "" {
		return conversation{}, invalidParameter(param, "the question is empty")
	}
	return c, nil
}

// readMessage returns a message and its role. An item that is no message has its type as the role.
func readMessage(at string, data json.RawMessage) (m chatMessage, role string, err error) {
	if typeOf(data) != "object" {
		return m, "", invalidParameter(at, "%s is not an object", at)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, "", invalidParameter(at, "%s has a member of the wrong type", at)
	}
	switch {
	case m.Type != "" && m.Type != "message":
		return m, m.Type, nil
	case m.Role == "system", m.Role == "developer", m.Role == "user", m.Role == "assistant", m.Role == "tool", m.Role == "function":
		return m, m.Role, nil
	}
	return m, "", invalidParameter(at+".role", "%s.role is %.20q, want system, developer, user, assistant or tool", at, m.Role)
}

// add adds a message to the turns. An assistant's message before any user's has no effect.
func (c *conversation) add(role, text string) {
	n := len(c.history)
	switch {
	case role == "user":
		c.history = append(c.history, assay.Turn{Question: text})
	case n > 0 && c.history[n-1].Answer != "" && text != "":
		c.history[n-1].Answer += "\n\n" + text
	case n > 0:
		c.history[n-1].Answer += text
	}
}

// textOf returns the text of a content: a string, or parts that are text.
func textOf(at string, content json.RawMessage) (string, error) {
	if len(content) == 0 || string(content) == "null" { // as of a message that calls tools
		return "", nil
	}
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text, nil
	}
	var parts []struct {
		Type    string  `json:"type"`
		Text    *string `json:"text"`
		Refusal *string `json:"refusal"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return "", invalidParameter(at, "%s is neither a text nor a list of parts", at)
	}
	var texts []string
	for i, p := range parts {
		if !contentTypes[p.Type] {
			return "", invalidParameter(fmt.Sprintf("%s[%d].type", at, i), "%s[%d] is of the type %.40q, and only text is read. Documents are added over the native interface.", at, i, p.Type)
		}
		switch {
		case p.Text != nil:
			texts = append(texts, *p.Text)
		case p.Refusal != nil:
			texts = append(texts, *p.Refusal)
		default:
			return "", invalidParameter(fmt.Sprintf("%s[%d]", at, i), "%s[%d] has no text", at, i)
		}
	}
	return strings.Join(texts, "\n"), nil
}
