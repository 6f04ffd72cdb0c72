package bedrocktest

import (
	"bytes"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"github.com/assay-rag/assay/llm/llmtest"
)

// Event returns an event frame of the given kind with a JSON payload.
func Event(kind string, payload any) []byte {
	return frame(payload, map[string]string{":message-type": "event", ":event-type": kind, ":content-type": "application/json"})
}

// Exception returns an error frame with an error that the API documents for its stream, for example
// "throttlingException".
func Exception(kind, message string) []byte {
	return frame(map[string]string{"message": message}, map[string]string{":message-type": "exception", ":exception-type": kind, ":content-type": "application/json"})
}

// Failure returns an error frame with an error that the API does not document.
func Failure(code, message string) []byte {
	return frame(nil, map[string]string{":message-type": "error", ":error-code": code, ":error-message": message})
}

// frame encodes a message with its lengths and checksums.
func frame(payload any, headers map[string]string) []byte {
	var m eventstream.Message
	for _, name := range []string{":message-type", ":event-type", ":exception-type", ":error-code", ":error-message", ":content-type"} {
		if v, ok := headers[name]; ok {
			m.Headers.Set(name, eventstream.StringValue(v))
		}
	}
	if payload != nil {
		m.Payload = llmtest.JSON(payload)
	}
	var b bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&b, m); err != nil {
		panic(fmt.Sprintf("bedrocktest: a frame cannot be encoded: %v", err))
	}
	return b.Bytes()
}
