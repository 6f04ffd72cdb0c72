package secret

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// maxRedacted is the largest number of bytes of foreign text that an error quotes.
const maxRedacted = 500

// maxRead is the number of bytes of a text that are examined. Later text is not quoted anyway, and
// the limit bounds the cost of hostile text.
const maxRead = 4 << 10

// gram is the number of consecutive letters shared with a secret from which on a word is masked,
// since a server may quote a key in part. Shorter matches occur by chance.
const gram = 8

// keyLike matches text that looks like any credential: the value after the name of a credential
// header or field, and the key formats of common vendors. The patterns allow stars, since some
// servers mask the middle of a key with stars.
var keyLike = []*lazyregexp.Regexp{
	lazyregexp.New(`(?i)\b((?:proxy-)?authorization|(?:x-)?(?:goog-)?api[-_ ]?key|access[-_ ]?token|x-amz-security-token|secret(?:[-_ ]?access)?[-_ ]?key|client[-_ ]?secret|password)(["']?\s*[:=]\s*["']?)((?:bearer|basic|token)\s+)?[^\s"',;&}]+`),
	lazyregexp.New(`(?i)\b(bearer|basic)(\s+)()[A-Za-z0-9+/=_.~*-]{6,}`),
	lazyregexp.New(`(?i)([?&](?:key|token|sig|signature|x-amz-[a-z]+))(=)()[^\s"'&]+`),
	lazyregexp.New(`()()()\b(?:sk|pk|rk|gsk|jina|hf|xai|pplx|ghp|glpat|co|r8)[-_][A-Za-z0-9_*.-]{8,}`),
	lazyregexp.New(`()()()\b(?:AIza|ya29\.)[A-Za-z0-9_*.-]{8,}`),
	lazyregexp.New(`()()()\bassay_[a-z2-7]{16}_[a-z2-7]{8,}`),
	lazyregexp.New(`()()()\b(?:AKIA|ASIA)[A-Z0-9]{12,}`),
	lazyregexp.New(`()()()\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_.-]+`),
}

// Redact returns text fit for an error or a log. It removes the secrets, in whole or in
// recognisable part, and anything else that looks like a credential. The result is on one line,
// printable, and shortened to 500 bytes.
func Redact(text string, secrets ...Secret) string {
	// A secret that is cut here is recognised by its part.
	text = strings.ToValidUTF8(text[:min(len(text), maxRead)], "\uFFFD")
	for _, s := range secrets { // verbatim, then without the characters that oneLine drops
		text = without(text, s.Reveal())
	}
	text = oneLine(text)
	for _, s := range secrets {
		text = without(text, oneLine(s.Reveal()))
	}
	for _, re := range keyLike {
		text = re.ReplaceAllString(text, "${1}${2}"+mask)
	}
	return shorten(text)
}

// without removes one secret from text: verbatim, as written in URLs and in Basic authorization,
// and then every word that contains a part of it, also backwards or in base64.
func without(text, secret string) string {
	if len(secret) < gram {
		return withoutWord(text, secret)
	}
	for _, form := range []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret),
		base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)),
	} {
		text = strings.ReplaceAll(text, form, mask)
	}
	grams := map[string]bool{}
	for _, form := range append(encoded(secret), secret, reversed(secret)) {
		form = strings.ToLower(form)
		for i := 0; i+gram <= len(form); i++ {
			grams[form[i:i+gram]] = true
		}
	}
	var b strings.Builder
	for len(text) > 0 {
		n := wordLen(text)
		if n == 0 {
			_, n = utf8.DecodeRuneInString(text)
			b.WriteString(text[:n])
		} else if holds(text[:n], grams) {
			b.WriteString(mask)
		} else {
			b.WriteString(text[:n])
		}
		text = text[n:]
	}
	return b.String()
}

// encoded returns the base64 forms of a secret inside a longer text, such as "Bearer " and the
// secret. They cover the bytes that do not depend on the surrounding text.
func encoded(secret string) []string {
	var forms []string
	for skip := range min(3, len(secret)) {
		inner := secret[skip:]
		inner = inner[:len(inner)/3*3]
		forms = append(forms, base64.RawStdEncoding.EncodeToString([]byte(inner)), base64.RawURLEncoding.EncodeToString([]byte(inner)))
	}
	return forms
}

func reversed(text string) string {
	bytes := []byte(text)
	slices.Reverse(bytes)
	return string(bytes)
}

// withoutWord removes a short secret from text if it is a separate word. Such a secret is a
// placeholder for a local server or a gateway's setting rather than a credential, and may be part
// of any word.
func withoutWord(text, secret string) string {
	if secret == "" {
		return text
	}
	isPart := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	var b strings.Builder
	for {
		i := strings.Index(text, secret)
		if i < 0 {
			return b.String() + text
		}
		end := i + len(secret)
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[end:])
		b.WriteString(text[:i])
		if isPart(before) || isPart(after) {
			b.WriteString(secret)
		} else {
			b.WriteString(mask)
		}
		text = text[end:]
	}
}

// wordLen returns the length of the longest prefix of text in characters of credentials.
func wordLen(text string) int {
	i := strings.IndexFunc(text, func(r rune) bool {
		return !(r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune("-_.~+/=*%", r))
	})
	if i < 0 {
		return len(text)
	}
	return i
}

func holds(word string, grams map[string]bool) bool {
	word = strings.ToLower(word)
	for i := 0; i+gram <= len(word); i++ {
		if grams[word[i:i+gram]] {
			return true
		}
	}
	return false
}

// oneLine replaces white space by single spaces and drops unprintable characters.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

func shorten(text string) string {
	if len(text) <= maxRedacted {
		return text
	}
	end := maxRedacted - len("…")
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
