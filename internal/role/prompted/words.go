package prompted

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
)

// Limits of the parts of a reply that are kept.
const (
	maxPhrases = 12
	maxPhrase  = 300 // bytes
	maxQuery   = 400 // bytes
)

// phrases returns the items of a model's list, each on one line, without empty items and
// duplicates. If there are too many, the last item gives the number of the rest.
func phrases(words []string) []string {
	out := []string{}
	for _, w := range words {
		if w = shorten(line(w), maxPhrase); w != "" && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	if n := len(out) - maxPhrases; n > 0 {
		out = append(out[:maxPhrases], fmt.Sprintf("and %d more", n))
	}
	return out
}

// query returns a model's search query on one line, without quotes around it.
func query(text string) string { return strings.Trim(line(text), "\"'`“” ") }

// tooLong returns a problem if a query is longer than most bytes.
func tooLong(text string, most int) []string {
	if n := len(query(text)); n > most {
		return []string{fmt.Sprintf("a query has %d bytes; the limit is %d", n, most)}
	}
	return nil
}

// failed reports whether a provider failed, rather than the run having ended.
func failed(ctx context.Context, err error) bool {
	return errors.Is(err, assay.ErrUnavailable) && !role.Ends(ctx, err)
}

// without returns the outcome of a role whose provider failed and that has no local role.
func without(name string, err error) role.Outcome {
	text := providerText(err)
	return role.Outcome{Failure: text, Notes: []string{name + ": " + text + "; there is no local " + name}}
}
