package parse

import (
	"fmt"
	"io"

	"golang.org/x/text/encoding/htmlindex"
)

// markupCharset returns a reader that decodes the encoding that an XML declaration names.
func markupCharset(charset string, r io.Reader) (io.Reader, error) {
	e, err := htmlindex.Get(charset)
	if err != nil {
		return nil, fmt.Errorf("encoding %q: %w: %w", charset, err, ErrEncoding)
	}
	return e.NewDecoder().Reader(r), nil
}
