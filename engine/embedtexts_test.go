package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
)

// TestEmbedTexts checks that texts are embedded as the encoder does, and which are refused.
func TestEmbedTexts(t *testing.T) {
	t.Parallel()
	e := openConfig(t, Config{Dir: t.TempDir(), Encoders: someEncoders("first/64"), NoBackground: true})
	got, err := e.EmbedTexts(t.Context(), assay.Local(), EmbedRequest{Purpose: llm.Query, Texts: []string{"one text", "another"}})
	if err != nil {
		t.Fatal(err)
	}
	want, err := llm.EmbedQuery(t.Context(), &llmtest.Hashing{Name: "first/64", Dimensions: 64}, "another")
	if err != nil {
		t.Fatal(err)
	}
	if got.Model != "first/64" || len(got.Vectors) != 2 || jsonOf(got.Vectors[1]) != jsonOf(want) {
		t.Errorf("EmbedTexts = %s of %d texts, the second one %v, want %v", got.Model, len(got.Vectors), got.Vectors[1], want)
	}
	for name, test := range map[string]struct {
		req  EmbedRequest
		kind error
	}{
		"none":          {EmbedRequest{}, assay.ErrInvalid},
		"empty":         {EmbedRequest{Texts: []string{"a", " \n"}}, assay.ErrInvalid},
		"not UTF-8":     {EmbedRequest{Texts: []string{"\xff"}}, assay.ErrInvalid},
		"too many":      {EmbedRequest{Texts: strings.Split(strings.Repeat("a ", MaxEmbedTexts), " ")}, assay.ErrInvalid},
		"another model": {EmbedRequest{Model: "other/64", Texts: []string{"a"}}, assay.ErrNotFound},
	} {
		if _, err := e.EmbedTexts(t.Context(), assay.Local(), test.req); !errors.Is(err, test.kind) {
			t.Errorf("%s: %v, want %v", name, err, test.kind)
		}
	}
	bare := openConfig(t, Config{Dir: t.TempDir(), NoBackground: true})
	if _, err := bare.EmbedTexts(t.Context(), assay.Local(), EmbedRequest{Texts: []string{"a"}}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("without encoders: %v, want ErrInvalid", err)
	}
}

// TestEmbedTextsIsCharged checks that calls of an encoder that is a service count, and end at the limit.
func TestEmbedTextsIsCharged(t *testing.T) {
	t.Parallel()
	e, _ := openRemote(t, Models{})
	if err := e.SetLimits(t.Context(), assay.Local(), limit.Tenant, limit.Limits{limit.CallsPerDay: 1}, ""); err != nil {
		t.Fatal(err)
	}
	asker := assay.Principal{User: "ann"}
	req := EmbedRequest{Texts: []string{"a text"}}
	if _, err := e.EmbedTexts(t.Context(), asker, req); err != nil {
		t.Fatal(err)
	}
	if _, err := e.EmbedTexts(t.Context(), asker, req); !errors.Is(err, assay.ErrQuota) {
		t.Errorf("over the limit: %v, want ErrQuota", err)
	}
}
