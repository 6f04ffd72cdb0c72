// Package secret keeps credentials out of everything that is printed: a Secret is
// one that shows itself only when asked by name, and Redact takes credentials out of
// text that others wrote, such as the error of a server that echoes what it was
// sent.
package secret

import (
	"fmt"
	"io"
	"log/slog"
)

// mask is what stands in the place of a credential.
const mask = "[secret]"

// A Secret is a credential. However it is printed, logged or encoded, also as a
// field of something else, its text is not shown. The zero Secret holds none.
type Secret struct {
	text *string // behind a pointer, since fmt does not ask the methods of unexported fields
}

// New returns text as a Secret; that of the empty text is the zero one.
func New(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{&text}
}

// Reveal returns the credential itself.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Empty reports whether there is none.
func (s Secret) Empty() bool { return s.text == nil }

// String returns a mask, or nothing where there is no credential.
func (s Secret) String() string {
	if s.Empty() {
		return ""
	}
	return mask
}

// Format implements fmt.Formatter: every verb prints String.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// GoString implements fmt.GoStringer as String does.
func (s Secret) GoString() string { return s.String() }

// MarshalText implements encoding.TextMarshaler, and so JSON and YAML, as String
// does.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue implements slog.LogValuer as String does.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
