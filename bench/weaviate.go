package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/encoding/protowire"
)

// A weaviate is a Weaviate node that scripts/weaviate started. It is filled and searched by gRPC, as
// by its own clients. The few messages are written by hand, with the field numbers of Weaviate's
// grpc/proto/v1, so that no client becomes a dependency.
type weaviate struct {
	rest, grpc string // URLs
	rig        string // folder with data and pid
	client     *http.Client
	source     sharedSource
}

const (
	weaviateName  = "Weaviate"
	weaviateClass = "Passage"
)

// openWeaviate connects to the node of two addresses, separated by a space.
func openWeaviate(addresses, rig string, source sharedSource) (*weaviate, error) {
	rest, grpc, ok := strings.Cut(addresses, " ")
	if !ok {
		return nil, fmt.Errorf("ASSAY_TEST_WEAVIATE is %q, not the addresses of REST and gRPC", addresses)
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true) // REST
	plain := &http.Transport{Protocols: &protocols}
	var http2 http.Protocols
	http2.SetUnencryptedHTTP2(true)
	calls := &http.Transport{Protocols: &http2}
	client := &http.Client{Transport: byHost{grpc: calls, other: plain, host: grpc}}
	return &weaviate{rest: "http://" + rest, grpc: "http://" + grpc, rig: rig, client: client, source: source}, nil
}

// byHost sends the requests to one host by a transport of its own.
type byHost struct {
	grpc, other *http.Transport
	host        string
}

// RoundTrip implements http.RoundTripper.
func (t byHost) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host == t.host {
		return t.grpc.RoundTrip(r)
	}
	return t.other.RoundTrip(r)
}

func (w *weaviate) name() string { return weaviateName }

func (w *weaviate) close() error {
	w.client.CloseIdleConnections()
	return nil
}

// processes implements system.
func (w *weaviate) processes() ([]int, error) {
	data, err := os.ReadFile(filepath.Join(w.rig, "pid"))
	if err != nil {
		return nil, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	return []int{pid}, err
}

func (w *weaviate) size(context.Context) (int64, error) {
	return folderSize(filepath.Join(w.rig, "data"))
}

// class is the schema: a text, which begins with title and heading, and the readers of its document.
// Everything else is Weaviate's default.
const class = `{"class": "` + weaviateClass + `", "vectorizer": "none", "vectorIndexConfig": {"distance": "cosine"}, "properties": [
	{"name": "text", "dataType": ["text"], "indexFilterable": false, "indexSearchable": true},
	{"name": "seen", "dataType": ["text[]"], "tokenization": "field", "indexFilterable": true, "indexSearchable": false}]}`

// fill implements system: four clients send batches of 500 objects.
func (w *weaviate) fill(ctx context.Context) error {
	if err := w.request(ctx, http.MethodDelete, "/v1/schema/"+weaviateClass, ""); err != nil {
		return err
	}
	if err := w.request(ctx, http.MethodPost, "/v1/schema", class); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	var batch []byte
	count := 0
	send := func() {
		message := batch
		batch, count = nil, 0
		g.Go(func() error { return w.put(ctx, message) })
	}
	c := w.source.corpus
	for d := range c.documents() {
		if ctx.Err() != nil {
			break
		}
		document := c.document(d)
		for i, chunk := range document.Chunks {
			number := int(c.first[d]) + i
			text := document.Title + "\n" + chunk.Heading + "\n" + chunk.Text
			batch = appendMessage(batch, 1, objectMessage(number, text, seenBy(d), w.source.vectors.row(number)))
			if count++; count == 500 {
				send()
			}
		}
	}
	if count > 0 {
		send()
	}
	return g.Wait()
}

// settle implements system. Weaviate indexes vectors before it acknowledges them.
func (w *weaviate) settle(context.Context) error { return nil }

// written waits until all that was stored is in the files that searches read. Weaviate writes them a
// minute after the last change; before that, its searches by words are slow, and their order differs.
func (w *weaviate) written(ctx context.Context) error {
	logs := filepath.Join(w.rig, "data", strings.ToLower(weaviateClass), "*", "lsm", "*", "*.wal")
	for range 600 {
		names, err := filepath.Glob(logs)
		if err != nil {
			return err
		}
		waiting := slices.ContainsFunc(names, func(name string) bool {
			info, err := os.Stat(name)
			return err == nil && info.Size() > 0
		})
		if !waiting {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
	return errors.New("weaviate has not written its memory to files for ten minutes")
}

func (w *weaviate) put(ctx context.Context, batch []byte) error {
	reply, err := w.call(ctx, "BatchObjects", batch)
	if err != nil {
		return err
	}
	return eachField(reply, func(number protowire.Number, value []byte) error {
		if number == 2 { // errors
			return fmt.Errorf("weaviate refuses an object: %q", value)
		}
		return nil
	})
}

// objectMessage returns a BatchObject. The UUID has the number of the chunk.
func objectMessage(number int, text string, seen []string, vector []float32) []byte {
	values := appendMessage(nil, 2, appendString(nil, 3, strings.ToValidUTF8(text, "")))          // google.protobuf.Value: string_value
	structure := appendMessage(nil, 1, append(appendString(nil, 1, "text"), values...))           // Struct.fields: key, value
	properties := appendMessage(nil, 1, structure)                                                // non_ref_properties
	properties = appendMessage(properties, 6, appendString(appendTexts(nil, 1, seen), 2, "seen")) // text_array_properties
	object := appendString(nil, 1, fmt.Sprintf("00000000-0000-4000-8000-%012x", number))          // uuid
	object = appendString(appendMessage(object, 3, properties), 4, weaviateClass)                 // properties, collection
	return appendMessage(object, 6, vectorBytes(vector))
}

// vectorBytes returns a vector as Weaviate takes it.
func vectorBytes(vector []float32) []byte {
	var values []byte
	for _, x := range vector {
		values = binary.LittleEndian.AppendUint32(values, math.Float32bits(x))
	}
	return values
}

func appendMessage(b []byte, field protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), message)
}

func appendString(b []byte, field protowire.Number, s string) []byte {
	return appendMessage(b, field, []byte(s))
}

func appendTexts(b []byte, field protowire.Number, list []string) []byte {
	for _, s := range list {
		b = appendString(b, field, s)
	}
	return b
}

// text implements system.
func (w *weaviate) text(ctx context.Context, group, q string) (answer, error) {
	return w.search(ctx, group, 42, appendTexts(appendString(nil, 1, q), 2, []string{"text"})) // BM25: query, properties
}

// nearest implements system.
func (w *weaviate) nearest(ctx context.Context, group string, v []float32) (answer, error) {
	return w.search(ctx, group, 43, appendMessage(nil, 4, vectorBytes(v))) // NearVector: vector_bytes
}

// hybrid implements system, with both parts of the same weight and the ranks fused as elsewhere.
func (w *weaviate) hybrid(ctx context.Context, group, q string, v []float32) (answer, error) {
	message := appendTexts(appendString(nil, 1, q), 2, []string{"text"}) // query, properties
	message = protowire.AppendFixed32(protowire.AppendTag(message, 4, protowire.Fixed32Type), math.Float32bits(0.5))
	message = protowire.AppendVarint(protowire.AppendTag(message, 5, protowire.VarintType), 1) // FUSION_TYPE_RANKED
	return w.search(ctx, group, 41, appendMessage(message, 6, vectorBytes(v)))
}

// search sends a SearchRequest for the IDs alone. A group but everyone becomes a filter.
func (w *weaviate) search(ctx context.Context, group string, field protowire.Number, how []byte) (answer, error) {
	message := appendString(nil, 1, weaviateClass)
	message = appendMessage(message, 20, nil) // no properties
	message = appendMessage(message, 21, protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1))
	message = protowire.AppendVarint(protowire.AppendTag(message, 30, protowire.VarintType), top)
	if group != groupAll {
		const containsAny = 12
		filter := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), containsAny)
		filter = appendMessage(filter, 9, appendString(nil, 1, group))   // value_text_array
		filter = appendMessage(filter, 20, appendString(nil, 1, "seen")) // target
		message = appendMessage(message, 40, filter)
	}
	message = appendMessage(message, field, how)
	message = protowire.AppendVarint(protowire.AppendTag(message, 102, protowire.VarintType), 1) // uses_127_api
	reply, err := w.call(ctx, "Search", message)
	if err != nil {
		return nil, err
	}
	return func() []int { return foundNumbers(reply) }, nil
}

// foundNumbers returns the numbers of the chunks of a SearchReply: results (2), metadata (2), id (1).
func foundNumbers(reply []byte) []int {
	var chunks []int
	_ = eachField(reply, func(number protowire.Number, result []byte) error {
		if number != 2 {
			return nil
		}
		return eachField(result, func(number protowire.Number, metadata []byte) error {
			if number != 2 {
				return nil
			}
			return eachField(metadata, func(number protowire.Number, id []byte) error {
				if number == 1 {
					n, err := strconv.ParseInt(string(id[strings.LastIndexByte(string(id), '-')+1:]), 16, 64)
					chunks = append(chunks, int(n))
					return err
				}
				return nil
			})
		})
	})
	return chunks
}

// eachField calls f for each field of a message that has a length.
func eachField(message []byte, f func(number protowire.Number, value []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		size := protowire.ConsumeFieldValue(number, kind, message)
		if size < 0 {
			return protowire.ParseError(size)
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message)
			if err := f(number, value); err != nil {
				return err
			}
		}
		message = message[size:]
	}
	return nil
}

// call makes a unary call of gRPC: a message behind five bytes, over HTTP/2, and the status in the
// trailer.
func (w *weaviate) call(ctx context.Context, method string, message []byte) ([]byte, error) {
	body := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.grpc+"/weaviate.v1.Weaviate/"+method, bytes.NewReader(append(body, message...)))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("Te", "trailers")
	response, err := w.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	reply, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	status, what := response.Trailer.Get("Grpc-Status"), response.Trailer.Get("Grpc-Message")
	if status == "" { // an answer of headers alone
		status, what = response.Header.Get("Grpc-Status"), response.Header.Get("Grpc-Message")
	}
	if status != "0" || len(reply) < 5 {
		return nil, fmt.Errorf("weaviate, %s: HTTP status %d, gRPC status %q: %s", method, response.StatusCode, status, what)
	}
	return reply[5:], nil
}

// request makes a request by REST. A class that does not exist can be deleted.
func (w *weaviate) request(ctx context.Context, method, path, body string) error {
	r, err := http.NewRequestWithContext(ctx, method, w.rest+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := w.client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 300 {
		err = fmt.Errorf("weaviate, %s %s: %s: %s", method, path, response.Status, data)
	}
	return err
}

// vectorIndex returns how Weaviate says that it indexes vectors.
func (w *weaviate) vectorIndex(ctx context.Context) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.rest+"/v1/schema/"+weaviateClass, nil)
	if err != nil {
		return "", err
	}
	response, err := w.client.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var schema struct {
		VectorIndexConfig struct {
			Ef, EfConstruction, MaxConnections int
			RQ                                 struct {
				Enabled bool
				Bits    int
			}
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&schema); err != nil {
		return "", err
	}
	c := schema.VectorIndexConfig
	what := fmt.Sprintf("HNSW, ef %d, ef_construction %d, max_connections %d", c.Ef, c.EfConstruction, c.MaxConnections)
	if c.RQ.Enabled {
		what += fmt.Sprintf(", rotational quantization of %d bits", c.RQ.Bits)
	}
	return what, nil
}
