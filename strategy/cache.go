package strategy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/run"
)

// An Earlier is a run whose answer may be reused for the question. It was asked with the same
// rights, of the same documents, models and settings.
type Earlier struct {
	Run      string `json:"run"`
	Question string `json:"question"`
}

// A Cache reaches the answers of earlier runs.
type Cache interface {
	// Answer returns the answer of an earlier run and the IDs of the documents that the run read. It
	// returns a nil answer if that may not be reused: it was deleted, something it depends on has
	// changed, or access was lost.
	Answer(ctx context.Context, run string) (*assay.Answer, []string, error)
}

// SameQuestion reports whether two questions have the same words. They may differ in white space,
// in closing punctuation, and in the case of words without inner capitals. Vectors do not
// distinguish "Does Alice report to Bob?" from "Does Bob report to Alice?".
func SameQuestion(a, b string) bool {
	one, other := strings.Fields(strings.TrimRight(a, " ?.!")), strings.Fields(strings.TrimRight(b, " ?.!"))
	return len(one) > 0 && slices.EqualFunc(one, other, func(x, y string) bool { return x == y || plain(x) && plain(y) && strings.EqualFold(x, y) })
}

// plain reports whether a word has no capital after its first letter. It keeps newReader apart from
// NewReader, and US from us.
func plain(word string) bool {
	_, size := utf8.DecodeRuneInString(word)
	return !strings.ContainsFunc(word[size:], unicode.IsUpper)
}

// A cacheOutput is the recorded result of a lookup.
type cacheOutput struct {
	Answer    *assay.Answer `json:"answer"`              // nil: no answer can be reused
	Documents []string      `json:"documents,omitempty"` // that its run read, by ID
}

// A cacheInput is the recorded input of a lookup.
type cacheInput struct {
	Question string       `json:"question"`
	Earlier  []Earlier    `json:"earlier"`
	Access   assay.Access `json:"access"`
}

// fromCache returns the answer of an earlier run to the same question; ok is false if there is
// none. A failed lookup is noted and does not end the run.
func (e Env) fromCache(ctx context.Context, s run.Scope, notes *noteList) (answer assay.Answer, ok bool) {
	if len(e.Earlier) == 0 {
		return assay.Answer{}, false
	}
	in := cacheInput{Question: e.Question, Earlier: e.Earlier, Access: e.Access}
	step := run.Step{Name: "cache", Kind: assay.StepCache}
	found, err := run.Do(ctx, s, step, in, func(ctx context.Context, in cacheInput) (cacheOutput, assay.Usage, error) {
		found, err := e.lookUpCache(ctx, in)
		return found, assay.Usage{}, err
	})
	if err != nil {
		notes.say(assay.NoteCached, remarkLine(fmt.Sprintf("the answer cache could not be read: %v", err)))
		return assay.Answer{}, false
	}
	if found.Answer == nil {
		return assay.Answer{}, false
	}
	return *found.Answer, true
}

// lookUpCache returns the reusable answer of the first earlier run with the same question.
func (e Env) lookUpCache(ctx context.Context, in cacheInput) (cacheOutput, error) {
	for _, r := range in.Earlier {
		if !SameQuestion(in.Question, r.Question) {
			continue
		}
		if found, err := e.reuseAnswer(ctx, in.Question, r); err != nil || found.Answer != nil {
			return found, err
		}
	}
	return cacheOutput{}, nil
}

// reuseAnswer returns the answer of an earlier run, adapted to the question.
func (e Env) reuseAnswer(ctx context.Context, question string, r Earlier) (cacheOutput, error) {
	before, documents, err := e.Cache.Answer(ctx, r.Run)
	if err != nil || before == nil {
		return cacheOutput{}, err
	}
	a := *before
	a.Question, a.Understood = question, ""
	a.Cached = &assay.Cached{Run: r.Run, Question: r.Question}
	a.Roles = make([]assay.RoleUse, len(before.Roles)) // the earlier use; it costs nothing now
	for i, use := range before.Roles {
		use.Usage = assay.Usage{}
		a.Roles[i] = use
	}
	var again noteList
	again.say(assay.NoteCached, fmt.Sprintf("reused the answer of run %s: its inputs have not changed", r.Run))
	a.Notes = withNotes(again.texts, before.Notes...)
	return cacheOutput{Answer: &a, Documents: documents}, nil
}
