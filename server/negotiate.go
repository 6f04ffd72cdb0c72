package server

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
)

// negotiate returns the offered media type that an Accept header prefers: that of the highest
// weight, of equal ones the first offered. Without a header, or without an offer, it is the first. If
// none is accepted, the error is errNotAcceptable. An error response is always problem details, so
// accepting those accepts JSON.
func negotiate(accept []string, offers []string) (string, error) {
	if len(offers) == 0 {
		return "", nil
	}
	header := strings.Join(accept, ",")
	if strings.TrimSpace(header) == "" {
		return offers[0], nil
	}
	best, weight := "", 0.0
	for _, offer := range offers {
		q := weightOf(header, offer)
		if offer == typeJSON {
			q = max(q, weightOf(header, typeProblem))
		}
		if q > weight {
			best, weight = offer, q
		}
	}
	if best == "" {
		return "", fmt.Errorf("only %s: %w", strings.Join(offers, ", "), errNotAcceptable)
	}
	return best, nil
}

// weightOf returns the weight of a media type in an Accept header, from its most specific range
// (RFC 9110, section 12.5.1). Ranges that cannot be parsed do not count.
func weightOf(header, offer string) float64 {
	kind, _, _ := strings.Cut(offer, "/")
	weight, rank := 0.0, 0
	for part := range strings.SplitSeq(header, ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		specific := map[string]int{"*/*": 1, kind + "/*": 2, offer: 3}[media]
		if specific > rank {
			rank, weight = specific, quality(params["q"])
		}
	}
	return weight
}

// quality returns a weight of a header: 1 without one, 0 for one without a valid form.
func quality(text string) float64 {
	if text == "" {
		return 1
	}
	q, err := strconv.ParseFloat(text, 64)
	if err != nil || !(0 <= q && q <= 1) {
		return 0
	}
	return q
}

// checkContentType checks the media type of a request's body. want may be "*/*".
func checkContentType(h http.Header, want string) error {
	if want == "*/*" {
		return nil
	}
	values := h.Values("Content-Type")
	if len(values) != 1 {
		return fmt.Errorf("%d headers Content-Type, want %s: %w", len(values), want, errMediaType)
	}
	media, params, err := mime.ParseMediaType(values[0])
	if err != nil || media != want {
		return fmt.Errorf("the Content-Type is %q, want %s: %w", values[0], want, errMediaType)
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return fmt.Errorf("the charset is %q, want utf-8: %w", charset, errMediaType)
	}
	return nil
}

// parameters returns the parameters of a request's URL.
func parameters(r *http.Request) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("the query of the URL has no valid form: %w", assay.ErrInvalid)
	}
	return values, nil
}

// minCompressed is the size in bytes from which a body is compressed.
const minCompressed = 1400

// acceptsGzip reports whether a client asks for gzip (RFC 9110, section 12.5.3).
func acceptsGzip(h http.Header) bool {
	for part := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		coding, params, _ := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			continue
		}
		_, q, _ := strings.Cut(params, "=")
		return quality(strings.TrimSpace(q)) > 0
	}
	return false
}

// compress returns data in gzip.
func compress(data []byte) []byte {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level exists
	}
	_, _ = z.Write(data) // a bytes.Buffer returns no error
	_ = z.Close()
	return b.Bytes()
}

// tagOf returns the strong entity tag of a body.
func tagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
}

// gzipSuffix ends the tag of a compressed body, whose bytes are others.
const gzipSuffix = `-gzip"`

// compressedTag returns the tag of the compressed form of a body.
func compressedTag(tag string) string { return strings.TrimSuffix(tag, `"`) + gzipSuffix }

// matches reports whether one of the entity tags of a header is tag, in whatever form it was sent
// before, or "*".
func matches(header []string, tag string) bool {
	for candidate := range strings.SplitSeq(strings.Join(header, ","), ",") {
		candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
		if plain, ok := strings.CutSuffix(candidate, gzipSuffix); ok {
			candidate = plain + `"`
		}
		if candidate == tag || candidate == "*" {
			return true
		}
	}
	return false
}
