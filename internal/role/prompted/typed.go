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
	// maxPrompts is the maximum number of prompts for one output.
	maxPrompts = 3

	// shownReply is the number of bytes of an unusable reply that the model is shown on retry.
	shownReply = 1500

	// unknownWindow is the assumed window, in tokens, of an unknown model, and minWindow the
	// smallest that is tried.
	unknownWindow = 32768
	minWindow     = 1024

	// retryRoom is the number of tokens of the window reserved for the problem with a reply.
	retryRoom = 120
)

// A job is one output requested from a model.
type job[T any] struct {
	Config
	task      string // of a role; names the template
	out       output
	maxTokens int     // of the reply
	own       *prompt // nil: the template of the task
	images    []llm.Image

	// write returns the user part of the prompt, in at most room tokens, with notes on the parts
	// left out. ok is false if no useful prompt fits.
	write func(p prompt, room int) (user string, notes []string, ok bool)

	// check returns the problems of an output that follows the schema, in words for the model. nil
	// means that there can be none.
	check func(*T) []string

	// salvage makes an output that check still rejects after the last prompt usable, by removing
	// the invalid parts, and returns notes on them. It is nil, or returns false, if that is
	// impossible.
	salvage func(*T) (notes []string, ok bool)
}

// ask requests the output. Its error is the Caller's, unchanged: the run ends, or the provider
// failed. A Failure in the outcome is the reason why there is no output.
func ask[T any](ctx context.Context, c role.Caller, j job[T]) (T, role.Outcome, error) {
	var none T
	a := asking[T]{job: j, window: llm.FactsOf(j.Model).Window}
	if j.own != nil {
		a.prompt = *j.own
	} else {
		a.prompt = j.promptOf(j.task)
	}
	if a.window <= 0 {
		a.window = unknownWindow
	}
	if !a.begin() {
		return none, a.failed("the request does not fit into the model's window of %d tokens", a.window), nil
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

// asking is a job in progress.
type asking[T any] struct {
	job[T]
	prompt  prompt
	window  int
	user    string
	left    []string // parts that the prompt leaves out
	request llm.Request
	notes   []string
	said    string // the last reply
	best    *T     // the last output that could be read but that check rejected
}

// begin builds the first request. It reports whether it fits the window.
func (a *asking[T]) begin() bool {
	reply := a.replyTokens(a.maxTokens)
	a.request = llm.Request{System: a.prompt.system, Schema: a.out.sent, MaxTokens: reply}
	frame := a.request
	frame.Messages = []llm.Message{{Speaker: llm.User, Images: a.images}}
	room := a.window - reply - retryRoom - frame.InputTokens()
	if room <= 0 {
		return false
	}
	user, left, ok := a.write(a.prompt, room)
	if !ok {
		return false
	}
	a.user, a.left = user, left
	a.request.Messages = []llm.Message{{Speaker: llm.User, Images: a.images, Text: user}}
	return true
}

// replyTokens limits want to the model's maximum output and a quarter of the window.
func (a *asking[T]) replyTokens(want int) int {
	if most := llm.FactsOf(a.Model).MaxOutput; most > 0 {
		want = min(want, most)
	}
	return max(1, min(want, a.window/4))
}

// call makes one request. If the provider rejects the schema, it retries without one, since the
// prompt describes it in words. If the provider reports that the request is too long, it retries
// with less.
func (a *asking[T]) call(ctx context.Context, c role.Caller) (llm.Response, error) {
	for {
		reply, err := c.Call(ctx, role.Call{Role: role.Of(a.task), Prompt: a.prompt.id, Model: a.Model, Request: a.request})
		if err == nil || !errors.Is(err, assay.ErrUnavailable) {
			return reply, err
		}
		switch {
		case refusesRequest(err) && a.request.Schema != nil:
			a.notes = append(a.notes, providerText(err)+"; retried without a schema")
			a.request.Schema, a.out.sent = nil, nil
		case isKind(err, llm.TooLong) && a.window > minWindow:
			before := a.window
			if a.window = smaller(a.window, a.request); !a.begin() {
				return reply, err
			}
			a.notes = append(a.notes, fmt.Sprintf("%s; retried with a shorter request, for a window of %d tokens instead of %d", providerText(err), a.window, before))
		default:
			return reply, err
		}
	}
}

// smaller returns the window to assume after a request was rejected as too long: half of what the
// request needed, which may be far less than an assumed window.
func smaller(window int, rejected llm.Request) int {
	return max(minWindow, min(window, rejected.InputTokens()+rejected.MaxTokens)/2)
}

// refusesRequest reports whether a provider rejected the contents of a request, so that a different
// request may succeed. Redirects and missing addresses do not count.
func refusesRequest(err error) bool {
	return isKind(err, llm.BadRequest) && !elsewhere.MatchString(providerText(err))
}

// elsewhere matches HTTP errors that any request to the address gets.
var elsewhere = lazyregexp.New(`^.*?: ` + string(llm.BadRequest) + ` \(HTTP (3\d\d|404|405|410)\)`)

// read parses a reply and returns the problems with it. readable reports whether v was decoded, so
// that only check may have rejected it.
func (a *asking[T]) read(reply llm.Response) (v T, problems []string, readable bool) {
	if len(reply.Calls) > 0 {
		return v, []string{fmt.Sprintf("it calls the tool %q, but there are no tools", shorten(line(reply.Calls[0].Name), 64))}, false
	}
	if strings.TrimSpace(reply.Text) == "" && reply.Finish != llm.FinishLength {
		return v, []string{"it is empty"}, false
	}
	raw, err := extract(reply.Text, a.out)
	if reply.Finish == llm.FinishLength && (err != nil || !whole(reply.Text)) {
		return v, []string{fmt.Sprintf("it was cut off after %d tokens; use fewer words", a.request.MaxTokens)}, false
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

// whole reports whether a text contains a complete JSON object.
func whole(text string) bool {
	for _, piece := range objects(withoutThoughts(text)) {
		if json.Valid([]byte(piece)) {
			return true
		}
	}
	return false
}

// again builds the next request: the first one, the reply, and the problems with it. A reply that
// was cut off gets twice the room. A reply that never began, because the model used the room for
// its thoughts, gets four times the room. No two requests are the same, since they would get the
// same reply. A reply that was repeated is not shown again.
func (a *asking[T]) again(try int, reply llm.Response, problems []string) {
	complaint := fmt.Sprintf("That reply cannot be used: %s.\nReply again, with one JSON object as it was asked for and nothing else. This is try %d of %d.",
		shorten(line(strings.Join(problems, "; ")), 600), try, maxPrompts)
	said := harmless(shorten(reply.Text, shownReply))
	messages := []llm.Message{
		{Speaker: llm.User, Images: a.images, Text: a.user},
		{Speaker: llm.Assistant, Text: said},
		{Speaker: llm.User, Text: complaint},
	}
	next := a.request
	next.Messages = messages
	if reply.Text == a.said || strings.TrimSpace(said) == "" || next.InputTokens()+next.MaxTokens > a.window {
		complaint = strings.Replace(complaint, "That reply", "Your last reply", 1)
		messages = []llm.Message{{Speaker: llm.User, Images: a.images, Text: a.user + "\n\n" + complaint}}
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

// last returns the result of a job whose last reply was unusable too.
func (a *asking[T]) last(problems []string) (T, role.Outcome, error) {
	var none T
	if a.best != nil && a.salvage != nil {
		if notes, ok := a.salvage(a.best); ok {
			a.notes = append(a.notes, notes...)
			return *a.best, role.Outcome{Notes: a.allNotes()}, nil
		}
	}
	return none, a.failed("the model gave no usable reply in %d tries; the last one: %s", maxPrompts, shorten(line(strings.Join(problems, "; ")), 300)), nil
}

// failed returns the outcome of a job without an output.
func (a *asking[T]) failed(format string, args ...any) role.Outcome {
	return role.Outcome{Failure: failure(a.Model, format, args...), Notes: a.allNotes()}
}

// failure returns the reason why a model gave no output. People read it and it may quote the model,
// so it omits addresses that the model may have been told to show.
func failure(m llm.Model, format string, args ...any) string {
	return m.Model() + ": " + anAddress.ReplaceAllString(fmt.Sprintf(format, args...), "(an address)")
}

// anAddress matches addresses that a reader could follow.
var anAddress = lazyregexp.New(`(?i)(?:\b[a-z][a-z0-9+.-]*://|\bwww\.|\bmailto:|\bjavascript:|\bdata:)[^\s"'<>)\]…]*`)

// allNotes returns the notes of the job, each with the role's name.
func (a *asking[T]) allNotes() []string {
	var notes []string
	for _, n := range slices.Concat(a.left, a.notes) {
		notes = append(notes, a.task+": "+n)
	}
	return notes
}

// shorten cuts a text to at most n bytes and marks the cut.
func shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
