package source

import (
	"encoding/hex"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// URI returns the URI of the file at an absolute path, which is the path with forward slashes.
//
// File names are bytes and a URI is text. A byte that is not part of valid UTF-8 is written as
// U+FFFD and two hexadecimal digits, and so is each byte of a U+FFFD in a name. So different names
// have different URIs. A "!" at the end of a name is written in the same way, so that
// assay.PartSeparator occurs only in the URIs of documents inside a file.
func URI(path string) string { return EscapeName(filepath.ToSlash(path)) }

// RootURI returns the URI of a root of Walk that is a file or folder. A root that is a symbolic
// link is not resolved.
func RootURI(root string) (string, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	return URI(abs), nil
}

// EscapeName returns the form that a name of bytes, such as a path in a repository, has in a URI. It is
// described at URI.
func EscapeName(s string) string {
	if utf8.ValidString(s) && !strings.ContainsAny(s, "!\uFFFD") {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		ends := r == '!' && (len(s) == 1 || s[1] == '/')
		if r != utf8.RuneError && !ends {
			b.WriteString(s[:n])
		} else {
			for i := range n {
				b.WriteRune(utf8.RuneError)
				b.WriteString(strings.ToUpper(hex.EncodeToString([]byte{s[i]})))
			}
		}
		s = s[n:]
	}
	return b.String()
}

// Path is the inverse of URI. For other input, such as a URL or the name of standard input, the
// result is meaningless.
func Path(uri string) string {
	var b strings.Builder
	for {
		plain, rest, found := strings.Cut(uri, string(utf8.RuneError))
		b.WriteString(plain)
		if !found {
			return filepath.FromSlash(b.String())
		}
		if len(rest) >= 2 {
			if raw, err := hex.DecodeString(rest[:2]); err == nil {
				b.Write(raw)
				uri = rest[2:]
				continue
			}
		}
		b.WriteRune(utf8.RuneError)
		uri = rest
	}
}
