package prompted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

const (
	// maxPrompts is how often a model is asked for one output.
	maxPrompts = 3

	// shownReply is how much, in bytes, of a reply that could not be used a model
	// is shown of when it is asked again.
	shownReply = 1500

	// unknownWindow is the window, in tokens, of a model of which nothing is known,
	// and minWindow the smallest that is tried.
	unknownWindow = 8192
	minWindow     = 1024

	// retryRoom is kept free in the window, in tokens, for what was wrong.
	retryRoom = 120
)

// A job is one output to get out of a model.
type job[T any] struct {
	Config
	role      string
	out       output
	maxTokens int     // of the reply
	own       *prompt // nil: the role's

	// write makes the user's part of the prompt so that it takes at most room
	// tokens, and says what it left out; ok is false when nothing sensible fits.
	write func(p prompt, room int) (user string, notes []string, ok bool)

	// check says, in words for the model, what of an output that follows the
	// schema is wrong all the same; nil: nothing can be.
	check func(*T) []string

	// salvage makes usable what check still refuses after the last prompt, by
	// leaving out what is wrong, and notes that. nil, or false: there is no way.
	salvage func(*T) (notes []string, ok bool)
}

// ask gets the output. Its error is the Caller's, as it is: the run ends, or the
// provider failed. A Failure in the outcome says why there is no output.
func ask[T any](ctx context.Context, c role.Caller, j job[T]) (T, role.Outcome, error) {
	var none T
	a := asking[T]{job: j, window: llm.FactsOf(j.Model).Window}
	if j.own != nil {
		a.prompt = *j.own
	} else {
		a.prompt = j.promptOf(j.role)
	}
	if a.window <= 0 {
		a.window = unknownWindow
	}
	if !a.begin() {
		return none, a.failed("what is asked does not fit into the model's window of %d tokens", a.window), nil
	}
	for n := 1; ; n++ {
		reply, err := a.call(ctx, c)
		if err != nil {
			return none, role.Outcome{}, err
		}
		if reply.Finish == llm.FinishRefused {
			return none, a.failed("the model refused: %s", shorten(line(reply.Text), 200)), nil
		}
		v, problems, readable := a.read(reply)
		if len(problems) == 0 {
			return v, role.Outcome{Notes: a.allNotes()}, nil
		}
		if readable {
			a.best = &v
		}
		if n == maxPrompts {
			return a.last(problems)
		}
		a.again(n+1, reply, problems)
	}
}

// asking is a job on the way.
type asking[T any] struct {
	job[T]
	prompt  prompt
	window  int
	user    string
	left    []string // what the prompt leaves out
	request llm.Request
	notes   []string
	said    string // the last reply
	best    *T     // the last output that could be read, though check refused it
}

// begin writes the first request. It reports whether it fits the window.
func (a *asking[T]) begin() bool {
	reply := a.replyTokens(a.maxTokens)
	a.request = llm.Request{System: a.prompt.system, Schema: a.out.sent, MaxTokens: reply}
	frame := a.request
	frame.Messages = []llm.Message{{Speaker: llm.User}}
	room := a.window - reply - retryRoom - frame.InputTokens()
	if room <= 0 {
		return false
	}
	user, left, ok := a.write(a.prompt, room)
	if !ok {
		return false
	}
	a.user, a.left = user, left
	a.request.Messages = []llm.Message{{Speaker: llm.User, Text: user}}
	return true
}

// replyTokens bounds a reply by what the model can say and by a quarter of its
// window.
func (a *asking[T]) replyTokens(want int) int {
	if most := llm.FactsOf(a.Model).MaxOutput; most > 0 {
		want = min(want, most)
	}
	return max(1, min(want, a.window/4))
}

// call asks once. A provider that does not take a schema is asked without one, for
// the prompt says it in words; one that finds the request too long is sent less.
func (a *asking[T]) call(ctx context.Context, c role.Caller) (llm.Response, error) {
	for {
		reply, err := c.Call(ctx, role.Call{Role: a.role, Prompt: a.prompt.id, Model: a.Model, Request: a.request})
		if err == nil || !errors.Is(err, assay.ErrUnavailable) {
			return reply, err
		}
		switch {
		case refusesRequest(err) && a.request.Schema != nil:
			a.notes = append(a.notes, providerText(err)+"; it was asked again without a schema")
			a.request.Schema, a.out.sent = nil, nil
		case isKind(err, llm.TooLong) && a.window > minWindow:
			before := a.window
			if a.window = max(minWindow, a.window/2); !a.begin() {
				return reply, err
			}
			a.notes = append(a.notes, fmt.Sprintf("%s; it was asked again with less, as if its window were %d tokens rather than %d", providerText(err), a.window, before))
		default:
			return reply, err
		}
	}
}

// refusesRequest reports whether a provider has refused what a request says, so that
// another may do better: not one that redirects, or that has nothing at its address.
func refusesRequest(err error) bool {
	return isKind(err, llm.BadRequest) && !elsewhere.MatchString(providerText(err))
}

// elsewhere matches errors of HTTP that no other request to the address avoids.
var elsewhere = lazyregexp.New(`^.*?: ` + string(llm.BadRequest) + ` \(HTTP (3\d\d|404|405|410)\)`)

// read reads a reply and says what is wrong with it; readable, when all that is
// wrong is what it means.
func (a *asking[T]) read(reply llm.Response) (v T, problems []string, readable bool) {
	if len(reply.Calls) > 0 {
		return v, []string{fmt.Sprintf("it calls the tool %q, and there are no tools here", shorten(line(reply.Calls[0].Name), 64))}, false
	}
	if strings.TrimSpace(reply.Text) == "" && reply.Finish != llm.FinishLength {
		return v, []string{"it is empty"}, false
	}
	raw, err := extract(reply.Text, a.out)
	if reply.Finish == llm.FinishLength && (err != nil || !whole(reply.Text)) {
		return v, []string{fmt.Sprintf("it was cut off after %d tokens: say the same in fewer words", a.request.MaxTokens)}, false
	}
	if err != nil {
		return v, []string{err.Error()}, false
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return v, []string{"it does not follow the schema: " + err.Error()}, false
	}
	if a.check == nil {
		return v, nil, true
	}
	return v, a.check(&v), true
}

// whole reports whether a text holds a JSON object that ends.
func whole(text string) bool {
	for _, piece := range objects(withoutThoughts(text)) {
		if json.Valid([]byte(piece)) {
			return true
		}
	}
	return false
}

// again writes the next request: the first one, the reply, and what is wrong with
// it. A reply that was cut off gets twice the room; one that never began, for a
// model has used it up with its thoughts, four times. No two requests are the same,
// for the same would come of them; a reply that was repeated is not shown again.
func (a *asking[T]) again(try int, reply llm.Response, problems []string) {
	complaint := fmt.Sprintf("That reply cannot be used: %s.\nReply again, with one JSON object as it was asked for and nothing else. This is try %d of %d.",
		shorten(line(strings.Join(problems, "; ")), 600), try, maxPrompts)
	said := harmless(shorten(reply.Text, shownReply))
	messages := []llm.Message{
		{Speaker: llm.User, Text: a.user},
		{Speaker: llm.Assistant, Text: said},
		{Speaker: llm.User, Text: complaint},
	}
	next := a.request
	next.Messages = messages
	if reply.Text == a.said || strings.TrimSpace(said) == "" || next.InputTokens()+next.MaxTokens > a.window {
		complaint = strings.Replace(complaint, "That reply", "Your last reply", 1)
		messages = []llm.Message{{Speaker: llm.User, Text: a.user + "\n\n" + complaint}}
	}
	a.request.Messages, a.said = messages, reply.Text
	if reply.Finish == llm.FinishLength {
		times := 2
		if strings.TrimSpace(reply.Text) == "" {
			times = 4
		}
		more := min(a.replyTokens(times*a.request.MaxTokens), a.window-a.request.InputTokens())
		a.request.MaxTokens = max(a.request.MaxTokens, more)
	}
}

// last ends a job whose last reply could not be used either.
func (a *asking[T]) last(problems []string) (T, role.Outcome, error) {
	var none T
	if a.best != nil && a.salvage != nil {
		if notes, ok := a.salvage(a.best); ok {
			a.notes = append(a.notes, notes...)
			return *a.best, role.Outcome{Notes: a.allNotes()}, nil
		}
	}
	return none, a.failed("no reply of the model could be used after %d prompts; of the last: %s", maxPrompts, shorten(line(strings.Join(problems, "; ")), 300)), nil
}

// failed is the outcome of a job without an output.
func (a *asking[T]) failed(format string, args ...any) role.Outcome {
	return role.Outcome{Failure: failure(a.Model, format, args...), Notes: a.allNotes()}
}

// failure says why a model has brought nothing. People read that, and it may quote the
// model: an address that it was told to show is not in it.
func failure(m llm.Model, format string, args ...any) string {
	return m.Model() + ": " + anAddress.ReplaceAllString(fmt.Sprintf(format, args...), "(an address)")
}

// anAddress matches what could be followed.
var anAddress = lazyregexp.New(`(?i)(?:\b[a-z][a-z0-9+.-]*://|\bwww\.|\bmailto:|\bjavascript:|\bdata:)[^\s"'<>)\]…]*`)

// allNotes are the notes of the job, each with the role's name.
func (a *asking[T]) allNotes() []string {
	var notes []string
	for _, n := range slices.Concat(a.left, a.notes) {
		notes = append(notes, a.role+": "+n)
	}
	return notes
}

// shorten cuts a text to at most n bytes, and shows that it did.
func shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
