package mcpserver

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/assay-rag/assay"
)

// A pending question is one that was asked back. The client keeps it as its request state, so that no
// memory is needed between the two requests.
type pending struct {
	Run     string    `json:"run"`     // which asked back
	Asked   string    `json:"asked"`   // digest of the arguments of the call
	Expires time.Time `json:"expires"` // after which the state is refused
}

// stateFresh is how long a request state is valid: long enough for a person to think.
const stateFresh = time.Hour

// A sealer signs request states for their owners. Its key lives as long as the process.
type sealer struct {
	key []byte
	now func() time.Time
}

func (s *sealer) sum(owner string, data []byte) []byte {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(owner)) // of fixed length
	mac.Write(data)
	return mac.Sum(nil)
}

// seal returns a request state that only owner can use.
func (s *sealer) seal(owner string, p pending) string {
	p.Expires = s.now().Add(stateFresh).UTC()
	data, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and a time can be encoded
	}
	return base64.RawURLEncoding.EncodeToString(append(s.sum(owner, data), data...))
}

// open returns the content of a request state, or assay.ErrInvalid if it was changed, has expired or
// is that of another owner.
func (s *sealer) open(owner, state string) (p pending, err error) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(state)
	if err != nil || len(data) < sha256.Size || !hmac.Equal(data[:sha256.Size], s.sum(owner, data[sha256.Size:])) {
		return p, fmt.Errorf("requestState is not one of this server for this user: %w", assay.ErrInvalid)
	}
	if err := json.NewDecoder(bytes.NewReader(data[sha256.Size:])).Decode(&p); err != nil {
		return p, fmt.Errorf("requestState: %w: %w", err, assay.ErrInvalid)
	}
	if s.now().After(p.Expires) {
		return p, fmt.Errorf("requestState has expired; ask again: %w", assay.ErrInvalid)
	}
	return p, nil
}
