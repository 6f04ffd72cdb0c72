package opensearch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/assay-rag/assay"
)

// Limits of one bulk request.
const (
	bulkRows  = 1000
	bulkBytes = 4 << 20
)

// A bulk collects rows and sends them in requests of limited size. Rows are visible after a refresh.
type bulk struct {
	cluster *Cluster
	index   string
	nonce   string // of the writer; part of the IDs of its rows
	rows    []bulkRow
	bytes   int
	dirty   bool // rows were sent or deleted since the last refresh
}

// A bulkRow is a row with its action, as lines of JSON.
type bulkRow struct {
	id    string
	lines []byte
}

// add adds a row, and sends what is due.
func (b *bulk) add(ctx context.Context, r row) error {
	// One claim writes a row once, so that a repeated request replaces it by itself.
	id := fmt.Sprintf("%s-%d-%s", b.nonce, r.Claim, digest(r.Kind, r.Field, r.Document, r.Chunk))
	action, err := json.Marshal(object{"index": object{"_id": id, "routing": r.Document}})
	if err != nil {
		return err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode row: %w", err)
	}
	lines := append(append(append(action, '\n'), data...), '\n')
	b.rows = append(b.rows, bulkRow{id, lines})
	b.bytes += len(lines)
	if len(b.rows) >= bulkRows || b.bytes >= bulkBytes {
		return b.send(ctx)
	}
	return nil
}

// maxAttempts is how often rows are sent that OpenSearch has no room for. With the pauses between,
// this is a minute.
const maxAttempts = 30

// send sends all rows. Rows that OpenSearch has no room for are sent again after a pause.
func (b *bulk) send(ctx context.Context) error {
	rows := b.rows
	b.rows, b.bytes = nil, 0
	for attempt := 0; len(rows) > 0; attempt++ {
		b.dirty = true
		again, err := b.sendOnce(ctx, rows)
		if err != nil {
			return err
		}
		if len(again) > 0 && attempt >= maxAttempts {
			return fmt.Errorf("write %d rows to OpenSearch: it has no room for them: %w", len(again), assay.ErrUnavailable)
		}
		if rows = again; len(rows) == 0 {
			break
		}
		if err := pause(ctx, backoff(attempt)); err != nil {
			return err
		}
	}
	return nil
}

// sendOnce sends rows and returns those to be sent again.
func (b *bulk) sendOnce(ctx context.Context, rows []bulkRow) (again []bulkRow, err error) {
	var body bytes.Buffer
	for _, r := range rows {
		body.Write(r.lines)
	}
	var answer struct {
		Errors bool
		Items  []map[string]struct {
			ID     string `json:"_id"`
			Status int
			Error  struct{ Type, Reason string }
		}
	}
	if err := b.cluster.do(ctx, http.MethodPost, "/"+b.index+"/_bulk", body.Bytes(), &answer); err != nil {
		return nil, fmt.Errorf("write rows: %w", err)
	}
	if len(answer.Items) != len(rows) {
		return nil, fmt.Errorf("write rows: OpenSearch answers for %d of %d: %w", len(answer.Items), len(rows), assay.ErrUnavailable)
	}
	for i, item := range answer.Items {
		result := item["index"]
		switch {
		case result.ID != rows[i].id:
			return nil, fmt.Errorf("write rows: OpenSearch answers for another row: %w", assay.ErrUnavailable)
		case result.Status == http.StatusTooManyRequests || result.Status >= 500:
			again = append(again, rows[i])
		case result.Status >= 300:
			return nil, fmt.Errorf("write row: %w", &refusal{result.Status, result.Error.Type + ": " + result.Error.Reason})
		}
	}
	return again, nil
}
