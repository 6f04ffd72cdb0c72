package config

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
)

const canary = "canary-0123456789abcdef"

// says is a model that returns fixed pieces or an error.
type says struct {
	pieces []string
	err    error
}

func (says) Model() string { return "test/says" }

func (m says) Generate(_ context.Context, _ llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	for _, p := range m.pieces {
		if stream != nil {
			stream(llm.Delta{Text: p})
		}
	}
	text := strings.Join(m.pieces, "")
	return llm.Response{
		Text: text, Served: text, Calls: []llm.ToolCall{{ID: text, Name: text, Arguments: text, Opaque: text}},
		Attempts: []llm.Attempt{{Kind: llm.ServerError, Message: text}},
	}, m.err
}

func canaries() *Secrets {
	s := new(Secrets)
	s.add(secret.New(canary), secret.New(canary+"-longer"), secret.New("short"))
	return s
}

// TestScrubStream checks that no part of a credential is streamed, however it is split into pieces.
func TestScrubStream(t *testing.T) {
	text := "a " + canary + " b " + canary + "-longer, canary-01 alone, short: " + canary[:10]
	want := "a [secret] b [secret], canary-01 alone, short: " + canary[:10]
	for size := 1; size <= len(text); size++ {
		var pieces []string
		for at := 0; at < len(text); at += size {
			pieces = append(pieces, text[at:min(at+size, len(text))])
		}
		var streamed strings.Builder
		r, err := scrubModel(says{pieces: pieces}, canaries()).Generate(t.Context(), llm.Request{}, func(d llm.Delta) { streamed.WriteString(d.Text) })
		if err != nil || r.Text != want {
			t.Fatalf("in pieces of %d: %q, %v", size, r.Text, err)
		}
		if got := streamed.String(); strings.Contains(got, canary) || !strings.HasPrefix(got, "a [secret] b [secret]") || !strings.HasSuffix(got, canary[:10]) {
			t.Fatalf("in pieces of %d streamed %q", size, got)
		}
		if all := fmt.Sprintf("%+v", r); strings.Contains(all, canary) {
			t.Fatalf("the response holds it: %s", all)
		}
	}
}

// TestScrubBase64 checks that credentials in base64 are removed.
func TestScrubBase64(t *testing.T) {
	for _, form := range []string{canary, "Bearer " + canary, ":" + canary} {
		text := base64.StdEncoding.EncodeToString([]byte(form))
		if got := canaries().Scrub("it sent " + text); strings.Contains(got, text[:12]) {
			t.Errorf("%q in base64: %q", form, got)
		}
	}
}

// TestScrubErrors checks that scrubbed errors keep their kind and other properties.
func TestScrubErrors(t *testing.T) {
	failed := &llm.Error{Model: "test/says", Kind: llm.BadKey, Status: 401, Message: "no such key " + canary, Attempts: []llm.Attempt{{Kind: llm.TimedOut, Message: canary}}}
	_, err := scrubModel(says{err: fmt.Errorf("ask: %w", failed)}, canaries()).Generate(t.Context(), llm.Request{}, nil)
	want := &llm.Error{Model: "test/says", Kind: llm.BadKey, Status: 401, Message: "no such key [secret]", Attempts: []llm.Attempt{{Kind: llm.TimedOut, Message: "[secret]"}}}
	found, ok := errors.AsType[*llm.Error](err)
	if diff := cmp.Diff(want, found); !ok || diff != "" {
		t.Errorf("the error (-want +got):\n%s", diff)
	}
	if failed.Attempts[0].Message != canary {
		t.Error("the error of the provider was changed in place")
	}
	other := fmt.Errorf("%s: %w", canary, assay.ErrBudget)
	_, err = scrubModel(says{err: other}, canaries()).Generate(t.Context(), llm.Request{}, nil)
	if !errors.Is(err, assay.ErrBudget) || strings.Contains(err.Error(), canary) {
		t.Errorf("another error: %v", err)
	}
}
