package webhook

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/store"
)

// TestEvent is the type of the message that tries a target out. No act has this kind.
const TestEvent = "webhook.test"

// shownDetails are the members of an act's detail that a message repeats, if they are numbers,
// booleans, short words or lists of such. They identify and count; texts, names of people and
// addresses are left out.
var shownDetails = []string{
	"approvals_needed", "attempt", "canary", "collection", "deadline", "decision", "due", "dwell_ms", "escalation", "expires", "foreign", "limit", "not_logged",
	"open_ms", "outcome", "place", "policies", "policy", "purpose", "renews", "run", "scope", "size", "state", "status", "stop", "strategy", "until", "waited_ms", "window",
}

// mostShown is the most members of a list that a message repeats.
const mostShown = 32

// shownWord matches a value that a message may repeat. It has no room for a sentence.
var shownWord = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.:+/-]{0,127}$`)

// payload is the body of a message in the standard form.
type payload struct {
	Type      string         `json:"type"`      // the kind of the act
	Timestamp time.Time      `json:"timestamp"` // of the act
	Data      map[string]any `json:"data"`
}

// payloadOf describes an act for a target.
func payloadOf(t Target, a store.LoggedAct) payload {
	data := map[string]any{}
	var detail map[string]any
	if json.Unmarshal(a.Detail, &detail) == nil {
		inner, _ := detail["detail"].(map[string]any) // alarms have one
		for _, name := range shownDetails {
			v, ok := shown(inner[name])
			if outer, found := shown(detail[name]); found {
				v, ok = outer, true
			}
			if ok {
				data[name] = v
			}
		}
	}
	if v, ok := shown(a.Subject); ok {
		data["subject"] = v
		if _, named := data["run"]; !named && (strings.HasPrefix(a.Kind, "review.") || strings.HasPrefix(a.Kind, "run.")) {
			data["run"] = v
		}
	}
	if a.Sequence > 0 {
		data["sequence"] = a.Sequence
	}
	if run, ok := data["run"].(string); ok {
		data["command"] = command(a.Kind, run)
		if t.Link != "" {
			data["link"] = strings.TrimSuffix(t.Link, "/") + "/runs/" + url.PathEscape(run)
		}
	}
	return payload{Type: a.Kind, Timestamp: a.Time.UTC(), Data: data}
}

// shown returns a value that a message may repeat.
func shown(v any) (any, bool) {
	switch v := v.(type) {
	case string:
		return v, shownWord.MatchString(v)
	case float64, bool:
		return v, true
	case []any:
		return v, len(v) <= mostShown && !slices.ContainsFunc(v, func(x any) bool { return !isWord(x) })
	}
	return nil, false
}

func isWord(v any) bool {
	text, ok := v.(string)
	return ok && shownWord.MatchString(text)
}

// command returns the command that shows a run.
func command(kind, run string) string {
	if strings.HasPrefix(kind, "review.") {
		return "assay review show " + run
	}
	return "assay show " + run
}

// body returns the body of a message about an act.
func body(t Target, a store.LoggedAct) ([]byte, error) {
	p := payloadOf(t, a)
	if t.Form == Slack {
		return encode(slackOf(p))
	}
	return encode(p)
}

// encode returns v as JSON without escapes for HTML.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// messageID returns the ID of the message about an act to a target. It depends on nothing else, so
// that it stays the same after a backup is restored. content is the identity of the tenant's content.
func messageID(content, target string, sequence int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", content, target, sequence))
	return "msg_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// A slackMessage is the body of Slack's incoming webhooks
// (https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks). Text is what
// notifications show.
type slackMessage struct {
	Text   string       `json:"text"`
	Blocks []slackBlock `json:"blocks"`
}

type slackBlock struct {
	Type string    `json:"type"`
	Text slackText `json:"text"`
}

type slackText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// slackTitles are the titles of the kinds that people wait for. Others show their kind.
var slackTitles = map[string]string{
	"review.needed":    "An answer waits for a review",
	"review.decided":   "A review was decided",
	"review.escalated": "A review is overdue",
	"canary.alarm":     "A canary was seen where it must not be",
	"egress.refused":   "A connection was refused",
	"stop.set":         "An administrator stopped all work",
	"stop.lifted":      "An administrator lifted a stop",
	TestEvent:          "A test of this webhook",
}

func slackOf(p payload) slackMessage {
	title, known := slackTitles[p.Type]
	if !known {
		title = p.Type
	}
	var facts []string
	for _, name := range append([]string{"subject"}, shownDetails...) {
		if v, ok := p.Data[name]; ok {
			facts = append(facts, fmt.Sprintf("%s `%s`", name, slackEscape(strings.Trim(fmt.Sprint(v), "[]"))))
		}
	}
	text := "*" + slackEscape(title) + "*"
	if len(facts) > 0 {
		text += "\n" + strings.Join(slices.Compact(facts), ", ")
	}
	link, linked := p.Data["link"].(string)
	todo, told := p.Data["command"].(string)
	switch {
	case linked:
		text += "\n<" + slackEscape(link) + "|Open it>"
	case told:
		text += "\n`" + slackEscape(todo) + "`"
	}
	return slackMessage{Text: slackEscape(title), Blocks: []slackBlock{{"section", slackText{"mrkdwn", text}}}}
}

// slackEscape escapes the characters that control Slack's text, and the marks of emphasis.
func slackEscape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "`", "'", "\n", " ").Replace(text)
}
