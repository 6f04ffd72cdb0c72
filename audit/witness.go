package audit

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// A Witness cosigns checkpoints of logs that it has seen grow, and refuses one that does not continue
// the last that it cosigned. It is reached as https://c2sp.org/tlog-witness says.
type Witness struct {
	url    string
	key    witnessVerifier
	client *http.Client
}

const (
	witnessTimeout = 30 * time.Second
	maxWitnessBody = 64 << 10
)

// isPrefix reports whether a path can be appended to a URL, which has a host and no credentials.
func isPrefix(u *url.URL) bool {
	return u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// NewWitness returns the witness with this submission prefix, an https URL, and verifier key. http is
// accepted for this machine only. Redirects are refused. The client makes the connections. The error
// is assay.ErrInvalid.
func NewWitness(prefix, key string, client *http.Client) (*Witness, error) {
	u, err := url.Parse(prefix)
	if err != nil || !isPrefix(u) {
		return nil, fmt.Errorf("witness %q: want an https URL: %w", prefix, assay.ErrInvalid)
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return nil, fmt.Errorf("witness %q: want https: %w", prefix, assay.ErrInvalid)
	}
	k, err := newWitnessVerifier(key)
	if err != nil {
		return nil, err
	}
	if client == nil {
		return nil, fmt.Errorf("witness %q: it needs an HTTP client: %w", prefix, assay.ErrInvalid)
	}
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Witness{strings.TrimRight(prefix, "/"), k, &own}, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// URL returns the witness's submission prefix.
func (w *Witness) URL() string { return w.url }

// Name returns the name of the witness's key.
func (w *Witness) Name() string { return w.key.name }

// Add submits a checkpoint of the log and returns the note with the witness's cosignature, which is
// verified. old is the size of the last checkpoint that it is known to have cosigned, 0 if that is
// not known. The error is
//
//   - assay.ErrDamaged if the witness has cosigned a checkpoint that this log does not continue,
//     or answers with a cosignature that is wrong;
//   - assay.ErrNotFound if it does not know the log, and assay.ErrForbidden if it does not know the
//     key;
//   - assay.ErrUnavailable if it cannot be reached or fails.
func (w *Witness) Add(ctx context.Context, a store.Audit, signed Signed, old int64) ([]byte, error) {
	lines, err := w.add(ctx, a, signed, old)
	var conflict conflictError
	if errors.As(err, &conflict) {
		if conflict.size > signed.Size {
			return nil, fmt.Errorf("witness %s has cosigned %d entries, the checkpoint has %d: entries were removed, or an older copy was restored: %w",
				w.url, conflict.size, signed.Size, assay.ErrDamaged)
		}
		if conflict.size == old {
			return nil, fmt.Errorf("witness %s has cosigned another root over %d entries: %w", w.url, old, assay.ErrDamaged)
		}
		lines, err = w.add(ctx, a, signed, conflict.size)
	}
	if errors.As(err, &conflict) {
		return nil, fmt.Errorf("witness %s: another checkpoint was added meanwhile, or its root differs: %w", w.url, assay.ErrUnavailable)
	}
	if err != nil {
		return nil, err
	}
	return w.merge(signed.Note, lines)
}

// merge appends the witness's signature lines to the note, without those of other keys.
func (w *Witness) merge(signed []byte, lines string) ([]byte, error) {
	for line := range strings.Lines(lines) {
		if !strings.HasPrefix(line, "— "+w.key.name+" ") || !strings.HasSuffix(line, "\n") {
			continue
		}
		text, _, _ := cutNote(signed)
		if cosignedBy([]byte(text+"\n"+line), w.key) {
			if bytes.Contains(signed, []byte(line)) {
				return signed, nil
			}
			return append(bytes.Clone(signed), line...), nil
		}
	}
	return nil, fmt.Errorf("witness %s: its answer has no good cosignature of the key %s: %w", w.url, w.key.name, assay.ErrDamaged)
}

// A conflictError is the answer of a witness whose last checkpoint has another size.
type conflictError struct{ size int64 }

func (e conflictError) Error() string { return fmt.Sprintf("it has %d entries", e.size) }

// add makes one add-checkpoint request and returns the signature lines.
func (w *Witness) add(ctx context.Context, a store.Audit, signed Signed, old int64) (string, error) {
	proof, err := Consistency(ctx, a, old, signed.Size)
	if err != nil {
		return "", err
	}
	var body strings.Builder
	fmt.Fprintf(&body, "old %d\n", old)
	for _, h := range proof {
		body.WriteString(base64.StdEncoding.EncodeToString(h[:]) + "\n")
	}
	body.WriteString("\n" + string(signed.Note))
	ctx, cancel := context.WithTimeout(ctx, witnessTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/add-checkpoint", strings.NewReader(body.String()))
	if err != nil {
		return "", fmt.Errorf("witness %s: %w: %w", w.url, assay.ErrInvalid, err)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return "", fmt.Errorf("witness %s: %w: %w", w.url, assay.ErrUnavailable, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxWitnessBody))
	if err != nil {
		return "", fmt.Errorf("witness %s: %w: %w", w.url, assay.ErrUnavailable, err)
	}
	return string(answer), w.status(resp, string(answer), old)
}

// status returns the error that a response means.
func (w *Witness) status(resp *http.Response, answer string, old int64) error {
	kind := assay.ErrUnavailable
	switch resp.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusConflict:
		if resp.Header.Get("Content-Type") != "text/x.tlog.size" {
			return conflictError{old} // the same size with another root
		}
		size, err := strconv.ParseInt(strings.TrimSuffix(answer, "\n"), 10, 64)
		if err != nil || size < 0 {
			return fmt.Errorf("witness %s: its size is %.40q: %w", w.url, answer, assay.ErrUnavailable)
		}
		return conflictError{size}
	case http.StatusNotFound:
		kind = assay.ErrNotFound
	case http.StatusForbidden:
		kind = assay.ErrForbidden
	case http.StatusUnprocessableEntity:
		kind = assay.ErrDamaged
	case http.StatusBadRequest:
		kind = assay.ErrInvalid
	}
	return fmt.Errorf("witness %s: %s: %.200q: %w", w.url, resp.Status, answer, kind)
}

// CheckConsistency checks a proof that a later checkpoint continues an earlier one. The error is
// assay.ErrDamaged.
func CheckConsistency(proof tlog.TreeProof, old, later Checkpoint) error {
	if old.Origin != later.Origin || old.Size > later.Size {
		return fmt.Errorf("checkpoints of %s and %s: %w", old.Origin, later.Origin, assay.ErrDamaged)
	}
	if old.Size == 0 || old.Size == later.Size {
		if old.Size == later.Size && old.Root != later.Root {
			return fmt.Errorf("two roots over %d entries: %w", old.Size, assay.ErrDamaged)
		}
		return nil
	}
	if err := tlog.CheckTree(proof, later.Size, later.Root, old.Size, old.Root); err != nil {
		return fmt.Errorf("%d entries are not the first of %d: %w: %w", old.Size, later.Size, assay.ErrDamaged, err)
	}
	return nil
}
