package sqldb

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/sourcetest"
)

// A fakeDataAPI has the documented requests, replies, errors and limits of the RDS Data API over
// another database.
type fakeDataAPI struct {
	*httptest.Server
	db       *sql.DB
	postgres bool

	mu           sync.Mutex
	transactions map[string]*sql.Tx
	calls        []string // paths, and the statements after them
	maxReply     int      // bytes; the service has 1 MiB
	// before is called before a request is answered, and may answer in its place.
	before func(call string, w http.ResponseWriter) (answered bool)
}

const (
	testCluster = "arn:aws:rds:eu-central-1:123456789012:cluster:shop"
	testSecret  = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:shop-AbCdEf"
)

func newDataAPI(t *testing.T, d *database) *fakeDataAPI {
	t.Helper()
	f := &fakeDataAPI{db: d.db, postgres: strings.HasPrefix(d.target, "postgres"), transactions: map[string]*sql.Tx{}, maxReply: 1 << 20}
	f.Server = httptest.NewServer(f)
	t.Cleanup(func() {
		f.Close()
		if len(f.transactions) > 0 {
			t.Errorf("%d transactions were not ended", len(f.transactions))
		}
	})
	return f
}

type object = map[string]any

func (f *fakeDataAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		ResourceArn, SecretArn, Database, SQL, TransactionID string
		IncludeResultMetadata                                bool
		Parameters                                           []object
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		refuse(w, http.StatusBadRequest, "BadRequestException", err.Error())
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, r.URL.Path+" "+in.SQL)
	signed := strings.Contains(r.Header.Get("Authorization"), "/eu-central-1/rds-data/aws4_request")
	if f.before != nil && f.before(r.URL.Path+" "+in.SQL, w) {
		return
	}
	tx, began := f.transactions[in.TransactionID]
	switch {
	case !signed || in.ResourceArn != testCluster || in.SecretArn != testSecret || r.Method != http.MethodPost:
		refuse(w, http.StatusForbidden, "ForbiddenException", "request")
	case in.TransactionID != "" && !began:
		refuse(w, http.StatusNotFound, "TransactionNotFoundException", "Transaction "+in.TransactionID+" is not found")
	case r.URL.Path == "/BeginTransaction" && in.Database == "articles":
		f.begin(w)
	case r.URL.Path == "/RollbackTransaction" && began:
		delete(f.transactions, in.TransactionID)
		tx.Rollback()
		reply(w, object{"transactionStatus": "Rollback Complete"})
	case r.URL.Path == "/Execute" && in.Database == "articles" && in.IncludeResultMetadata:
		f.execute(w, tx, in.TransactionID, in.SQL, in.Parameters)
	default:
		refuse(w, http.StatusBadRequest, "BadRequestException", "request "+r.URL.Path)
	}
}

func (f *fakeDataAPI) begin(w http.ResponseWriter) {
	tx, err := f.db.BeginTx(context.Background(), nil)
	if err != nil {
		refuse(w, http.StatusBadRequest, "DatabaseErrorException", err.Error())
		return
	}
	id := fmt.Sprint("transaction-", len(f.calls))
	f.transactions[id] = tx
	reply(w, object{"transactionId": id})
}

// refuse answers with an error.
//
// Source: Smithy, "AWS restJson1 protocol", operation error serialization.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("X-Amzn-ErrorType", code)
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(object{"message": message})
}

func reply(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(body)
}

var parameterMark = regexp.MustCompile(`:p(\d+)`)

// execute runs a statement. An error ends its transaction.
func (f *fakeDataAPI) execute(w http.ResponseWriter, tx *sql.Tx, id, statement string, parameters []object) {
	fail := func(status int, code, message string) {
		if tx != nil {
			tx.Rollback()
			delete(f.transactions, id)
		}
		refuse(w, status, code, message)
	}
	if strings.HasPrefix(statement, "SET TRANSACTION") && !f.postgres {
		reply(w, object{"numberOfRecordsUpdated": 0})
		return
	}
	var args []any
	for i, p := range parameters {
		if p["name"] != fmt.Sprint("p", i+1) {
			fail(http.StatusBadRequest, "BadRequestException", "parameter name")
			return
		}
		args = append(args, argument(p["value"].(object)))
	}
	query := parameterMark.ReplaceAllStringFunc(statement, func(mark string) string {
		if !f.postgres {
			return "$" + mark[2:]
		}
		kind := map[string]string{"int64": "bigint", "string": "text"}[fmt.Sprintf("%T", args[0])]
		switch parameters[0]["typeHint"] {
		case "UUID":
			kind = "uuid"
		case "DECIMAL":
			kind = "numeric"
		}
		return "$" + mark[2:] + "::" + kind
	})
	var rows *sql.Rows
	var err error
	if tx != nil {
		rows, err = tx.Query(query, args...)
	} else {
		rows, err = f.db.Query(query, args...)
	}
	if err != nil {
		fail(http.StatusBadRequest, "DatabaseErrorException", "ERROR: "+err.Error())
		return
	}
	defer rows.Close()
	body, problem := f.result(rows)
	if problem != "" {
		rows.Close()
		fail(http.StatusBadRequest, "BadRequestException", problem)
		return
	}
	reply(w, body)
}

// maxRow is the largest row of a result.
const maxRow = 64 << 10

// result returns a reply, or the message of the error for a result that is too large.
func (f *fakeDataAPI) result(rows *sql.Rows) (object, string) {
	columns, _ := rows.ColumnTypes()
	metadata, records, size := []object{}, [][]object{}, 0
	for _, c := range columns {
		metadata = append(metadata, object{"label": c.Name(), "name": c.Name(), "typeName": strings.ToLower(c.DatabaseTypeName())})
	}
	for rows.Next() {
		values, dest := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			dest[i] = &values[i]
		}
		if err := rows.Scan(dest...); err != nil {
			return nil, err.Error()
		}
		record, row := []object{}, 0
		for i, v := range values {
			record = append(record, field(v, columns[i].DatabaseTypeName()))
			row += len(text(v))
		}
		records = append(records, record)
		if size += row; row > maxRow {
			return nil, "Packet for query is too large"
		}
	}
	if size > f.maxReply {
		return nil, "Database returned more than the allowed response size limit"
	}
	return object{"columnMetadata": metadata, "records": records, "numberOfRecordsUpdated": 0}, ""
}

// field returns a value as a Field.
func field(v any, kind string) object {
	switch v := v.(type) {
	case nil:
		return object{"isNull": true}
	case int64:
		return object{"longValue": v}
	case float64:
		return object{"doubleValue": v}
	case bool:
		return object{"booleanValue": v}
	case []byte:
		return object{"blobValue": base64.StdEncoding.EncodeToString(v)}
	case time.Time:
		if kind == "DATE" {
			return object{"stringValue": v.Format(time.DateOnly)}
		}
		return object{"stringValue": v.UTC().Format("2006-01-02 15:04:05.999999")}
	}
	s := text(v)
	if kind == "_TEXT" {
		return object{"arrayValue": object{"stringValues": strings.Split(strings.Trim(s, "{}"), ",")}}
	}
	return object{"stringValue": s}
}

// argument returns the value of a parameter.
func argument(value object) any {
	if n, ok := value["longValue"]; ok {
		return int64(n.(float64))
	}
	return value["stringValue"]
}

// aurora returns the world of a database as one of Aurora.
func aurora(t *testing.T, d *database, options map[string]string) (sourcetest.World, *fakeDataAPI) {
	t.Helper()
	f := newDataAPI(t, d)
	w := d.world(options)
	w.Kind = Aurora()
	w.Config.Options["secret"], w.Config.Options["endpoint"] = testSecret, f.URL
	w.Config.Target = "aurora-postgres:" + testCluster + "/articles"
	w.Config.HTTP, w.Config.Credential = f.Client(), testKeys
	w.URI = func(name string) string { return w.Config.Target + "#" + name }
	w.Throttle = func(requests int, after time.Duration) {
		f.answer(func(w http.ResponseWriter) bool {
			w.Header().Set("Retry-After", fmt.Sprint(after.Seconds()))
			requests--
			return requests >= 0
		}, http.StatusBadRequest, "ThrottlingException")
	}
	w.Refuse = func() {
		f.answer(func(http.ResponseWriter) bool { return true }, http.StatusForbidden, "AccessDeniedException")
	}
	return w, f
}

// answer makes the fake answer requests with an error while it is due.
func (f *fakeDataAPI) answer(due func(http.ResponseWriter) bool, status int, code string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = func(call string, w http.ResponseWriter) bool {
		if strings.HasPrefix(call, "/Rollback") || !due(w) {
			return false
		}
		refuse(w, status, code, "no")
		return true
	}
}

// testKeys returns the credentials of tests.
func testKeys(name string) (string, error) {
	return map[string]string{"access-key": "AKIDEXAMPLE", "secret-key": "wJalrXUtnFEMIexamplekey"}[name], nil
}

func openAuroraTable(t *testing.T, w sourcetest.World) *table {
	t.Helper()
	all, err := w.Kind.Complete(w.Config.Options)
	if err != nil {
		t.Fatal(err)
	}
	c := w.Config
	c.Options, c.Now = all, sourcetest.NewClock().Now
	c.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	s, err := w.Kind.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.(*table)
}

func TestAuroraContract(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) *database{"sqlite": newSQLite, "postgres": newPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, options := range []map[string]string{nil, {"updated": "changed"}} {
				sourcetest.Run(t, func(t *testing.T) sourcetest.World {
					w, _ := aurora(t, open(t), options)
					return w
				})
			}
		})
	}
}

// listing returns the names of the items of a sweep, in order.
func listing(t *testing.T, s *table) ([]string, error) {
	t.Helper()
	var names []string
	for item, err := range s.Sweep(t.Context()) {
		if err != nil {
			return names, err
		}
		_, name, _ := strings.Cut(item.URI, "#")
		names = append(names, name)
	}
	return names, nil
}

// TestAuroraPages checks that a listing is read in pages of a snapshot, and again with smaller ones if
// a page is too large, although that ends the transaction.
func TestAuroraPages(t *testing.T) {
	t.Parallel()
	d := newSQLite(t)
	w, f := aurora(t, d, nil)
	var want []string
	for i := range 40 {
		name := fmt.Sprintf("row%02d", i)
		want = append(want, name)
		w.Put(name, strings.Repeat("x", 60_000))
	}
	s := openAuroraTable(t, w)
	for range 2 {
		if got, err := listing(t, s); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%d rows, %v, want %d", len(got), err, len(want))
		}
	}
	begun, pages := 0, 0
	for _, call := range f.calls {
		if strings.HasPrefix(call, "/BeginTransaction") {
			begun++
		}
		if strings.Contains(call, " LIMIT ") {
			pages++
		}
	}
	if begun != 4 || pages != 2+2*3 { // 1000 and 125 rows are too many, and then 15 in each page
		t.Errorf("%d transactions, %d pages", begun, pages)
	}
}

// TestAuroraLarge checks that a row that the Data API cannot return is skipped with the reason, and
// that a listing with such a row fails.
func TestAuroraLarge(t *testing.T) {
	t.Parallel()
	w, _ := aurora(t, newSQLite(t), map[string]string{"updated": "changed"})
	w.Put("large", strings.Repeat("x", 70_000))
	s := openAuroraTable(t, w)
	for item, err := range s.Sweep(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Fetch(t.Context(), item)
		if skip, ok := source.AsSkip(err); !ok || skip.Reason != source.TooLarge {
			t.Errorf("Fetch = %v, want it to be too large", err)
		}
	}
	delete(w.Config.Options, "updated")
	if _, err := listing(t, openAuroraTable(t, w)); !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), "updated") {
		t.Errorf("Sweep = %v", err)
	}
}

// TestAuroraTypes checks the types of columns and identities.
func TestAuroraTypes(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]string{"uuid": "UUID", "numeric": "NUMERIC", "bigint": "BIGINT", "text": "TEXT"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newPostgres(t)
			f := newDataAPI(t, d)
			value := map[string]string{"uuid": "'8d7e0d5c-6a3f-4ef2-9a01-2b3c4d5e6f70'", "numeric": "12.50", "bigint": "7", "text": "'8d7e0d5c-6a3f-4ef2-9a01-2b3c4d5e6f70'"}[name]
			d.exec(`CREATE TABLE a (id ` + id + ` PRIMARY KEY, body TEXT, at TIMESTAMPTZ, day DATE, price DOUBLE PRECISION, ok BOOLEAN, readers TEXT[])`)
			d.exec(`INSERT INTO a VALUES (` + value + `, 'the body', '2025-02-03 04:05:06.25Z', '2024-01-02', 1.5, true, '{group:hr,user:ann}')`)
			s := openAuroraTable(t, sourcetest.World{Kind: Aurora(), Config: source.Config{
				Target: "aurora-postgres:" + testCluster + "/articles", HTTP: f.Client(), Credential: testKeys,
				Options: map[string]string{"query": "SELECT * FROM a", "text": "body", "updated": "at", "metadata": "price,ok,day", "acl": "readers", "secret": testSecret, "endpoint": f.URL},
			}})
			n := 0
			for item, err := range s.Sweep(t.Context()) {
				n++
				if err != nil {
					t.Fatal(err)
				}
				if want := time.Date(2025, 2, 3, 4, 5, 6, 250e6, time.UTC); !item.Metadata[assay.MetaModified].Time.Equal(want) {
					t.Errorf("modified %v", item.Metadata[assay.MetaModified])
				}
				day := time.Date(2024, 1, 2, 0, 0, 0, 0, time.UTC)
				if item.Metadata["price"].Number != 1.5 || !item.Metadata["ok"].Boolean || !item.Metadata["day"].Time.Equal(day) {
					t.Errorf("metadata %v", item.Metadata)
				}
				if strings.Join(item.ACL.Allow, " ") != "group:hr user:ann" || !item.ACL.Restricted {
					t.Errorf("ACL %v", item.ACL)
				}
				content, err := s.Fetch(t.Context(), item)
				if err != nil || string(content.Data) != "the body" {
					t.Errorf("Fetch = %q, %v", content.Data, err)
				}
			}
			if n != 1 {
				t.Errorf("%d items, want 1", n)
			}
			if _, err := s.db.ExecContext(t.Context(), `DELETE FROM a`); err == nil {
				t.Error("the source can delete rows")
			}
			if tx, err := s.db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead}); err != nil {
				t.Error(err)
			} else {
				if rows, err := tx.QueryContext(t.Context(), `INSERT INTO a VALUES (DEFAULT) RETURNING id`); err == nil {
					rows.Close()
					t.Error("a listing can insert rows")
				}
				tx.Rollback()
			}
		})
	}
}

// TestAuroraFailures checks errors and replies that are not of the documented form.
func TestAuroraFailures(t *testing.T) {
	t.Parallel()
	refusal := func(status int, code string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { refuse(w, status, code, "no, key wJalrXUtnFEMIexamplekey") }
	}
	body := func(s string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { w.Write([]byte(s)) }
	}
	for name, test := range map[string]struct {
		answer func(http.ResponseWriter)
		want   error // of a listing if the answer stays; nil: assay.ErrUnavailable
		passes bool  // the listing succeeds if the answer comes once
	}{
		"resuming":     {refusal(http.StatusBadRequest, "DatabaseResumingException"), nil, true},
		"throttled":    {refusal(http.StatusBadRequest, "ThrottlingException"), nil, true},
		"internal":     {refusal(http.StatusInternalServerError, "InternalServerErrorException"), nil, true},
		"unavailable":  {refusal(http.StatusServiceUnavailable, "ServiceUnavailableError"), nil, true},
		"gateway":      {func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) }, nil, true},
		"closed":       {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, nil, true},
		"expired":      {refusal(http.StatusNotFound, "TransactionNotFoundException"), nil, true},
		"denied":       {refusal(http.StatusForbidden, "ForbiddenException"), source.ErrCredentials, false},
		"secret":       {refusal(http.StatusBadRequest, "InvalidSecretException"), source.ErrCredentials, false},
		"database":     {refusal(http.StatusBadRequest, "DatabaseErrorException"), nil, false},
		"not enabled":  {refusal(http.StatusBadRequest, "HttpEndpointNotEnabledException"), nil, false},
		"redirect":     {func(w http.ResponseWriter) { w.Header().Set("Location", "http://evil.test/"); w.WriteHeader(302) }, nil, false},
		"truncated":    {body(`{"records":[[{"stringValue":`), nil, false},
		"not JSON":     {body(`<html>`), nil, false},
		"fewer fields": {body(`{"columnMetadata":[{"label":"id"},{"label":"t"}],"records":[[{"stringValue":"a"}]]}`), nil, false},
		"other fields": {body(`{"columnMetadata":[{"label":"id"}],"records":[[{"stringValue":"a"}]]}`), nil, false},
		"wrong type":   {body(`{"columnMetadata":[{"label":"id"}],"records":[[{"longValue":"a"}]]}`), nil, false},
		"huge":         {body(`{"records":[` + strings.Repeat(" ", 9<<20) + `]}`), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, f := aurora(t, newSQLite(t), map[string]string{"updated": "changed"})
			w.Put("a", "words")
			f.before = func(call string, w http.ResponseWriter) bool {
				page := strings.Contains(call, " LIMIT ")
				if page {
					test.answer(w)
				}
				return page
			}
			want := test.want
			if want == nil {
				want = assay.ErrUnavailable
			}
			names, err := listing(t, openAuroraTable(t, w))
			if !errors.Is(err, want) || len(names) > 0 || strings.Contains(fmt.Sprint(err), "wJalr") {
				t.Errorf("Sweep = %v, %v, want %v", names, err, want)
			}
			once := true
			f.mu.Lock()
			f.before = func(call string, w http.ResponseWriter) bool {
				answered := once && strings.Contains(call, " LIMIT ")
				if answered {
					once = false
					test.answer(w)
				}
				return answered
			}
			f.mu.Unlock()
			if names, err := listing(t, openAuroraTable(t, w)); (err == nil) != test.passes || test.passes != (len(names) == 1) {
				t.Errorf("after one failure: %v, %v", names, err)
			}
		})
	}
}

func TestAuroraInvalid(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ target, secret, endpoint string }{
		"no ARN":      {"aurora-postgres:shop/articles", testSecret, ""},
		"no database": {"aurora-postgres:" + testCluster, testSecret, ""},
		"instance":    {"aurora-postgres:arn:aws:rds:eu-central-1:123456789012:db:shop/articles", testSecret, ""},
		"engine":      {"aurora-oracle:" + testCluster + "/articles", testSecret, ""},
		"no secret":   {"aurora-postgres:" + testCluster + "/articles", "", ""},
		"password":    {"aurora-postgres:" + testCluster + "/articles", "hunter2", ""},
		"endpoint":    {"aurora-postgres:" + testCluster + "/articles", testSecret, "https://user:hunter2@host"},
	} {
		all, err := Aurora().Complete(map[string]string{"query": "SELECT 1", "text": "a", "secret": test.secret, "endpoint": test.endpoint})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Aurora().Open(t.Context(), source.Config{Target: test.target, Options: all, Credential: testKeys})
		if !errors.Is(err, assay.ErrInvalid) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: Open = %v", name, err)
		}
	}
}
