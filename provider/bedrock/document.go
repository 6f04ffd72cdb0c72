package bedrock

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	smithydocument "github.com/aws/smithy-go/document"
)

// fromJSON returns a JSON object in the SDK's form. Numbers keep their digits.
func fromJSON(text []byte) (document.Interface, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF || object == nil {
		return nil, errors.New("it is not a single JSON object")
	}
	return document.NewLazyDocument(numbers(object)), nil
}

// arguments returns the arguments of a call, which need not be JSON.
func arguments(text string) document.Interface {
	if text == "" {
		return document.NewLazyDocument(map[string]any{})
	}
	if d, err := fromJSON([]byte(text)); err == nil {
		return d
	}
	return document.NewLazyDocument(map[string]any{"arguments": text})
}

// numbers converts numbers of encoding/json to the SDK's, which would treat them as strings.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		return smithydocument.Number(v)
	case map[string]any:
		for k, member := range v {
			v[k] = numbers(member)
		}
	case []any:
		for i, member := range v {
			v[i] = numbers(member)
		}
	}
	return v
}

// toJSON returns a document of a reply as JSON, and {} for a missing one.
func toJSON(d smithydocument.Marshaler) (string, error) {
	if d == nil {
		return "{}", nil
	}
	data, err := d.MarshalSmithyDocument()
	return string(data), err
}
