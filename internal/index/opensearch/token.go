package opensearch

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay"
)

// maxToken is the largest number of bytes of a string that is a token as a whole. Lucene takes terms
// of 32,766 bytes, of which latin may need two for each.
const maxToken = 8000

// latin returns one character for each byte of s, U+0000 to U+00FF. So strings that are not UTF-8 can
// be sent, and prefixes, substrings and the order of the result are those of the bytes.
func latin(s string) string {
	if ascii(s) {
		return s
	}
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

// unlatin is the inverse of latin.
func unlatin(s string) string {
	if ascii(s) {
		return s
	}
	var b []byte
	for _, r := range s {
		b = append(b, byte(r))
	}
	return string(b)
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// keyword returns the token of a name. Equal tokens mean equal names.
func keyword(s string) string {
	if len(s) > maxToken/8 {
		return "#" + digest(s)
	}
	return "=" + latin(s)
}

// public is the token of an unrestricted document.
const public = "public"

// aclTokens returns the tokens of an ACL. A principal sees a document if they have a token in common.
func aclTokens(acl assay.ACL) []string {
	if !acl.Restricted {
		return []string{public}
	}
	return keywords(acl.Allow)
}

// accessTokens returns the tokens of an access.
func accessTokens(access assay.Access) []string {
	return append(keywords(access.Names()), public)
}

func keywords(names []string) []string {
	tokens := make([]string, len(names))
	for i, n := range names {
		tokens[i] = keyword(n)
	}
	return tokens
}

// term returns a term of package analysis as OpenSearch splits it off at blanks. A term that would be
// split or cut gets a digest.
func term(t string) string {
	const longest = 200 // below the 255 characters of the tokenizer
	if len(t) > longest || strings.ContainsFunc(t, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == utf8.RuneError }) {
		return "\u00b6" + digest(t)
	}
	return t
}

// feature returns a term, as term returns it, without dots, which divide the names of fields. No term
// has control characters.
func feature(term string) string { return strings.ReplaceAll(term, ".", "\x01") }

// maxLanguage is the longest name of a language that is kept.
const maxLanguage = 64

// language returns the language that a document is analysed as.
func language(d *assay.Document) string {
	v := d.Metadata[assay.MetaLanguage]
	if v.Kind != assay.KindString || v.String == "" {
		return "en"
	}
	return v.String[:min(len(v.String), maxLanguage)]
}

// Prefixes of the tokens of metadata. Each is followed by the digest of the key.
const (
	tokenString  = "s" // a string, or its first maxToken bytes
	tokenWindow  = "w" // a later part of a long string
	tokenWhole   = "e" // a string: its digest
	tokenMember  = "m" // a member of a list, or its first maxToken bytes
	tokenPart    = "p" // a later part of a long member
	tokenElement = "f" // a member of a list: its digest
	tokenList    = "l" // a list: its digest
	tokenNumber  = "n" // ordered
	tokenBoolean = "b"
	tokenTime    = "t" // ordered
	tokenDate    = "d" // the time of a string with a date, ordered
)

// A metaKey is a key of metadata in tokens.
type metaKey string

func metaKeyOf(key string) metaKey { return metaKey(digest(key)) }

func (k metaKey) token(prefix, value string) string { return prefix + string(k) + value }

// kind returns the token of a kind of value under a key.
func (k metaKey) kind(kind assay.ValueKind) string { return string(k) + string(kind) }

// metaTokens returns the tokens of metadata: the kinds of its keys, and its values.
func metaTokens(m assay.Metadata) (keys, values []string) {
	keys, values = []string{}, []string{}
	for key, v := range m {
		k := metaKeyOf(key)
		keys = append(keys, k.kind(v.Kind))
		values = append(values, k.value(v)...)
	}
	slices.Sort(keys)
	slices.Sort(values)
	return keys, slices.Compact(values)
}

func (k metaKey) value(v assay.Value) []string {
	switch v.Kind {
	case assay.KindString:
		tokens := k.text(v.String, tokenWhole, tokenString, tokenWindow)
		if t, ok := assay.ParseDate(v.String); ok {
			tokens = append(tokens, k.token(tokenDate, orderedTime(t)))
		}
		return tokens
	case assay.KindNumber:
		return []string{k.token(tokenNumber, orderedNumber(v.Number))}
	case assay.KindBoolean:
		return []string{k.token(tokenBoolean, fmt.Sprint(v.Boolean))}
	case assay.KindTime:
		return []string{k.token(tokenTime, orderedTime(v.Time))}
	case assay.KindList:
		tokens := []string{k.token(tokenList, digest(v.List...))}
		for _, member := range v.List {
			tokens = append(tokens, k.text(member, tokenElement, tokenMember, tokenPart)...)
		}
		return tokens
	}
	return nil
}

// text returns the tokens of a string. Every substring of at most maxToken/2 bytes is in one of them.
func (k metaKey) text(s, whole, first, later string) []string {
	tokens := []string{k.token(whole, digest(s)), k.token(first, latin(s[:min(len(s), maxToken)]))}
	for at := maxToken / 2; at+maxToken/2 < len(s); at += maxToken / 2 {
		tokens = append(tokens, k.token(later, latin(s[at:min(len(s), at+maxToken)])))
	}
	return tokens
}

// orderedNumber returns 16 digits that have the order of the numbers.
func orderedNumber(n float64) string {
	if n == 0 {
		n = 0 // -0 equals 0
	}
	bits := math.Float64bits(n)
	if bits>>63 == 1 {
		bits = ^bits
	} else {
		bits |= 1 << 63
	}
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], bits)
	return hex.EncodeToString(b[:])
}

// orderedTime returns 24 digits that have the order of the times.
func orderedTime(t time.Time) string {
	var b [12]byte
	binary.BigEndian.PutUint64(b[:], uint64(t.Unix())^1<<63)
	binary.BigEndian.PutUint32(b[8:], uint32(t.Nanosecond()))
	return hex.EncodeToString(b[:])
}
