package server

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
)

// openaiText returns the text of an answer with what a reader must know of its status. The text of
// the answer comes first, so that the offsets of its claims hold.
func openaiText(a assay.Answer) string {
	text := cmp.Or(a.Text, a.AskBack)
	var parts []string
	switch a.Status {
	case assay.Answered:
	case assay.NotFound:
		text = cmp.Or(text, "The documents do not answer this question.")
		parts = append(parts, searchedText(a.Searched))
	case assay.Incomplete:
		if a.AskBack == "" {
			parts = append(parts, "This answer is incomplete: "+sentence(a.Justification))
		}
		parts = append(parts, missingText(a.Missing))
	case assay.Conflicting:
		parts = append(parts, "The documents disagree: "+sentence(a.Justification))
	case assay.PendingReview:
		text = cmp.Or(text, "The answer waits for a person's review.")
		parts = append(parts, fmt.Sprintf("The decision will be found under the run %s: GET /v1/responses/%s shows the answer when it is released.", a.Run, responseID(a.Run)))
	case assay.Rejected:
		text = cmp.Or(text, a.Justification, "The answer is not shown.")
		parts = append(parts, fmt.Sprintf("The run is %s.", a.Run))
	default:
		text = cmp.Or(text, "There is no answer.")
		parts = append(parts, "Status: "+string(a.Status)+".")
	}
	for _, p := range parts {
		if p != "" {
			text = strings.TrimRight(text, "\n") + "\n\n" + p
		}
	}
	return text
}

// sentence returns text with a full stop.
func sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

func searchedText(searched []assay.Searched) string {
	if len(searched) == 0 {
		return "Nothing was searched."
	}
	lines := []string{"Searched:"}
	for _, s := range searched {
		line := fmt.Sprintf("- “%s”: %d hits", unmarked(s.Query), s.Hits)
		if s.Hits > 0 {
			line += fmt.Sprintf(", best relevance %.2f", s.TopRelevance)
		}
		if len(s.Collections) > 0 {
			line += ", in " + strings.Join(s.Collections, ", ")
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func missingText(missing []assay.Gap) string {
	if len(missing) == 0 {
		return ""
	}
	lines := []string{"Missing:"}
	for _, m := range missing {
		lines = append(lines, "- "+unmarked(m.Text))
	}
	return strings.Join(lines, "\n")
}

// unmarked replaces the marks of Markdown and HTML for images, links and code in a line. A model may
// have written it, and an image in it would tell its address what the documents say.
func unmarked(text string) string { return markup.Replace(oneLine(text)) }

var markup = strings.NewReplacer("![", "! [", "](", "] (", "][", "] [", "<", "‹", "`", "'")

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// finishReason returns why a chat completion ended. An answer that is withheld from the client is
// content that was filtered.
func finishReason(a assay.Answer) string {
	if a.Status == assay.PendingReview || a.Status == assay.Rejected {
		return "content_filter"
	}
	return "stop"
}

// Limits of OpenAI for metadata.
const maxMetadataValue = 512 // characters

// metadataOf returns what OpenAI's objects have no members for. skipped are the names of parameters
// and messages without effect.
func metadataOf(a assay.Answer, skipped []string) map[string]string {
	verdicts := map[assay.Verdict]int{}
	for _, c := range a.Claims {
		verdicts[c.Verdict]++
	}
	missing := make([]string, len(a.Missing))
	for i, m := range a.Missing {
		missing[i] = oneLine(m.Text)
	}
	values := map[string]string{
		"assay_run":      a.Run,
		"assay_status":   string(a.Status),
		"assay_reason":   string(a.Reason),
		"assay_stop":     string(a.Stop),
		"assay_strategy": a.Strategy,
		"assay_verdicts": fmt.Sprintf("%d supported, %d contradicted, %d unsupported", verdicts[assay.Supported], verdicts[assay.Contradicted], verdicts[assay.Unsupported]),
		"assay_missing":  strings.Join(missing, "; "),
		"assay_ignored":  strings.Join(skipped, ", "),
	}
	if len(missing) > 0 {
		values["assay_missing_count"] = strconv.Itoa(len(missing))
	}
	if a.Understood != "" {
		values["assay_understood"] = oneLine(a.Understood)
	}
	if a.Cached != nil {
		values["assay_cached"] = a.Cached.Run
	}
	for key, value := range values {
		if value == "" {
			delete(values, key)
		} else {
			values[key] = firstCharacters(value, maxMetadataValue)
		}
	}
	return values
}

// firstCharacters returns text with at most n characters, of which the last is an ellipsis if it was cut.
func firstCharacters(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

// A citedClaim is a claim with one of the sources that support it.
type citedClaim struct {
	citation   assay.Citation // the first of the claim's of that number
	start, end int            // of the claim in the text, in code points
}

// citedClaims returns the claims with each of their sources once, in the order of the text.
func citedClaims(a assay.Answer) []citedClaim {
	var cited []citedClaim
	for i, claim := range a.Claims {
		start, end := codePoint(a.Text, claim.Start), codePoint(a.Text, claim.End)
		var numbers []int
		for _, c := range a.Citations {
			if c.Claim == i && !slices.Contains(numbers, c.Number) {
				numbers = append(numbers, c.Number)
				cited = append(cited, citedClaim{c, start, end})
			}
		}
	}
	slices.SortStableFunc(cited, func(x, y citedClaim) int { return cmp.Or(cmp.Compare(x.start, y.start), cmp.Compare(x.end, y.end)) })
	return cited
}

// codePoint returns the number of code points before the byte at an offset.
func codePoint(text string, offset int) int {
	return utf8.RuneCountInString(text[:min(max(offset, 0), len(text))])
}

// A urlCitation is the source of a part of a text: of the code points [StartIndex, EndIndex).
type urlCitation struct {
	URL        string `json:"url"`
	Title      string `json:"title"`
	StartIndex int    `json:"start_index"`
	EndIndex   int    `json:"end_index"`
}

// citationURL returns the address of a cited source: its own if it is on the web, and otherwise that
// of the document at this server. It is empty if there is neither.
func (x *exchange) citationURL(c assay.Citation) string {
	for _, own := range []string{c.Link, c.URI} {
		if strings.HasPrefix(own, "https://") || strings.HasPrefix(own, "http://") {
			return own
		}
	}
	if c.Document == "" || c.Origin != assay.FromDocuments {
		return ""
	}
	return x.origin() + "/api/v1/documents/" + url.PathEscape(c.Document)
}

// origin returns the scheme and host by which the client reaches this server.
func (x *exchange) origin() string {
	scheme := "http"
	if x.r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + x.r.Host
}

func (x *exchange) urlCitations(a assay.Answer) []urlCitation {
	list := []urlCitation{}
	for _, c := range citedClaims(a) {
		if u := x.citationURL(c.citation); u != "" {
			list = append(list, urlCitation{URL: u, Title: titleOf(c.citation), StartIndex: c.start, EndIndex: c.end})
		}
	}
	return list
}

// titleOf returns the title of a source, or the name of its file.
func titleOf(c assay.Citation) string { return cmp.Or(c.Title, path.Base(c.URI)) }

// pieces cuts a text for a stream, at spaces where there are some. They are joined again to the text.
func pieces(text string) []string {
	const most = 48 // bytes, where there is a space
	var list []string
	for len(text) > most {
		cut := strings.LastIndexByte(text[:most], ' ') + 1
		if cut == 0 {
			cut = most
		}
		for cut < len(text) && !utf8.RuneStart(text[cut]) {
			cut++
		}
		list = append(list, text[:cut])
		text = text[cut:]
	}
	if text != "" {
		list = append(list, text)
	}
	return list
}
