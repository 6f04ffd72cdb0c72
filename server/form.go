package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"

	"github.com/assay-rag/assay"
)

// Bounds of a form with files.
const (
	MaxFormBytes = 512 << 20
	maxParts     = 1000
)

// A Form reads a body of multipart/form-data part by part, in its order, so that no file is kept.
type Form struct {
	parts *multipart.Reader
	read  int
}

// OpenForm returns the form of a body with a Content-Type.
func OpenForm(contentType string, body io.Reader) (*Form, error) {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || media != "multipart/form-data" || params["boundary"] == "" {
		return nil, fmt.Errorf("multipart/form-data with a boundary is needed: %w", errMediaType)
	}
	return &Form{parts: multipart.NewReader(body, params["boundary"])}, nil
}

// A FormPart is a field of a form, or a file. It is read before the next part.
type FormPart struct {
	Name   string // of the field, or the path of the file as the client wrote it
	IsFile bool
	Type   string // media type of the file; empty: not known

	part *multipart.Part
}

// Next returns the next part. The error is io.EOF after the last one, and otherwise one for which
// EndsForm is true.
func (f *Form) Next() (*FormPart, error) {
	part, err := f.parts.NextRawPart()
	if errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	if err != nil {
		return nil, badForm(err)
	}
	if f.read++; f.read > maxParts {
		return nil, multipartError{fmt.Errorf("it has more than %d parts", maxParts)}
	}
	name, isFile, err := partName(part)
	if err != nil {
		return nil, err
	}
	return &FormPart{Name: name, IsFile: isFile, Type: mediaType(part.Header.Get("Content-Type")), part: part}, nil
}

// Read implements io.Reader.
func (p *FormPart) Read(b []byte) (int, error) {
	n, err := p.part.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = badForm(err)
	}
	return n, err
}

// Text returns the value of a field. One of more than limit bytes is assay.ErrInvalid.
func (p *FormPart) Text(limit int) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(p, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if len(data) > limit {
		return nil, fmt.Errorf("the field %q has more than %d bytes: %w", p.Name, limit, assay.ErrInvalid)
	}
	return data, nil
}

// EndsForm reports whether the error of one file concerns the files that follow as well: the body
// cannot be read on, or the caller may not upload.
func EndsForm(err error) bool {
	var part multipartError
	kind := problemKindOf(err)
	_, whole := errors.AsType[*http.MaxBytesError](err)
	unreadable := whole || isSlow(err) || errors.As(err, &part)
	return unreadable || kind.Status == http.StatusUnauthorized || kind.Name == "stopped"
}

// A multipartError means that a form is malformed.
type multipartError struct{ err error }

func (e multipartError) Error() string { return "the form is malformed: " + e.err.Error() }
func (e multipartError) Unwrap() error { return assay.ErrInvalid }

// badForm returns the error for a form that cannot be read on.
func badForm(err error) error {
	if isTooLarge(err) || isSlow(err) || errors.Is(err, context.Canceled) {
		return err
	}
	return multipartError{err}
}

// partName returns the name of a part, and whether it is a file. The name of a file is a path, as the
// client wrote it.
func partName(part *multipart.Part) (name string, isFile bool, err error) {
	disposition, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	if err != nil || disposition != "form-data" {
		return "", false, multipartError{fmt.Errorf("a part has no Content-Disposition form-data")}
	}
	name, isFile = params["filename"]
	if !isFile {
		name = params["name"]
	}
	return name, isFile, nil
}
