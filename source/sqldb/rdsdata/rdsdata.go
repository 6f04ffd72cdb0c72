// Package rdsdata is a driver of database/sql that reads a database of Amazon Aurora through the RDS
// Data API, which needs no connection to the database's network.
//
// A query outside a transaction is one request. A transaction is read-only and sees one snapshot. Its
// queries are read in pages, because a reply of the Data API has at most 1 MiB: each page is the
// query with LIMIT and OFFSET, so the query must have a complete order and neither of the two. Nothing
// else is executed: there are no statements that write and none that are prepared.
//
// Parameters are int64, float64, bool, string, []byte, [time.Time], [UUID] and [Decimal]; the first is :p1.
// Columns are returned in these types too, and arrays as JSON.
//
// Sources: AWS, RDS Data API Reference, ExecuteStatement, BeginTransaction, RollbackTransaction,
// SqlParameter and Field; Amazon Aurora User Guide, "Limitations for the Amazon RDS Data API" and
// "Troubleshooting Amazon RDS Data API issues". The service itself was not reached.
package rdsdata

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rdsdata"
	"github.com/aws/aws-sdk-go-v2/service/rdsdata/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/awssign"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/source"
)

// Errors of queries. They are wrapped with the message of the service.
var (
	ErrDenied      = errors.New("access denied")
	ErrRowTooLarge = errors.New("a row exceeds 64 KB, which is the limit of the Data API")
	ErrTooLarge    = errors.New("the result exceeds 1 MiB, which is the limit of the Data API")
)

// errExpired means that a transaction was lost.
var errExpired = errors.New("the transaction was lost")

// The numbers of rows in a page. minPage rows have less than 1 MiB, since a row has at most 64 KB.
const (
	maxPage = 1000
	minPage = 15
)

// maxReply is the size above which a reply is refused, in bytes. A MiB of the database's data grows in
// JSON.
const maxReply = 8 << 20

// A Config says which database is read. All fields but Endpoint are required.
type Config struct {
	AWS      aws.Config // region and credentials
	Endpoint string     // empty: AWS's for the region
	Cluster  string     // ARN
	Secret   string     // ARN of the secret that has the user and the password
	Database string

	// Source has the HTTP client. Its Retry repeats requests that fail for a time, such as those to a
	// cluster that is paused and resumes.
	Source source.Config

	// MySQL: the cluster is of Aurora MySQL, otherwise of Aurora PostgreSQL.
	MySQL bool
}

// A Connector connects to one database. It is safe for concurrent use.
type Connector struct {
	config Config
	client *rdsdata.Client
	page   atomic.Int64 // rows of a page
}

// NewConnector returns a connector. It sends no request.
func NewConnector(c Config) *Connector {
	x := &Connector{config: c}
	x.page.Store(maxPage)
	client := *c.Source.HTTP
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	x.client = rdsdata.NewFromConfig(c.AWS, func(o *rdsdata.Options) {
		o.HTTPClient, o.Retryer, o.ClientLogMode = awssign.Client{HTTP: &client, MaxBytes: maxReply}, aws.NopRetryer{}, 0
		if c.Endpoint != "" {
			o.BaseEndpoint = &c.Endpoint
		}
	})
	return x
}

// Connect implements driver.Connector. A connection is no more than the ID of a transaction.
func (c *Connector) Connect(context.Context) (driver.Conn, error) { return &conn{connector: c}, nil }

// Driver implements driver.Connector.
func (c *Connector) Driver() driver.Driver { return unnamed{} }

// unnamed is the driver, which opens nothing by name.
type unnamed struct{}

func (unnamed) Open(string) (driver.Conn, error) { return nil, errors.ErrUnsupported }

// call makes a request, and repeats it while it fails with an error that may not last.
func call[T any](ctx context.Context, c *Connector, do func(context.Context) (T, error)) (out T, err error) {
	err = c.config.Source.Retry(ctx, func(ctx context.Context) error {
		var failed error
		out, failed = do(ctx)
		return c.failed(ctx, failed)
	})
	return out, err
}

// failed returns the error of a request: a *source.TransientError if it may not last. It contains no
// credential.
func (c *Connector) failed(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	text, code := err.Error(), ""
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		code = api.ErrorCode()
		text = code + ": " + api.ErrorMessage()
	}
	var secrets []secret.Secret
	if k, err := c.config.AWS.Credentials.Retrieve(ctx); err == nil {
		secrets = append(secrets, secret.New(k.SecretAccessKey), secret.New(k.SessionToken), secret.New(k.AccessKeyID))
	}
	text = secret.Redact(strings.TrimSpace(text), secrets...)
	status, after := 0, time.Duration(0)
	if reply, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		status, after = reply.HTTPStatusCode(), c.config.Source.RetryAfter(reply.Response.Header)
	}
	large, tooLarge := errors.AsType[*awssign.TooLargeError](err)
	switch kind := kindOf(code, text); {
	case kind != nil:
		return fmt.Errorf("%s: %w", text, kind)
	case tooLarge:
		return fmt.Errorf("%w: %w", large, assay.ErrUnavailable)
	case resumes[code], status == 0, status == http.StatusTooManyRequests, status >= http.StatusInternalServerError:
		return &source.TransientError{After: after, Err: errors.New(text)}
	}
	return fmt.Errorf("%s: %w", text, assay.ErrUnavailable)
}

// resumes has the errors that do not last, although some have the status 400.
var resumes = map[string]bool{
	"DatabaseResumingException": true, "DatabaseUnavailableException": true, "ThrottlingException": true,
	"ServiceUnavailableError": true, "InternalServerErrorException": true,
}

// kindOf returns one of the errors of this package, or nil.
func kindOf(code, text string) error {
	text = strings.ToLower(text)
	switch {
	case code == "AccessDeniedException" || code == "ForbiddenException" || code == "InvalidSecretException" || code == "SecretsErrorException":
		return ErrDenied
	case code == "TransactionNotFoundException" || strings.Contains(text, "transaction") && strings.Contains(text, "not found"):
		return errExpired
	case strings.Contains(text, "packet for query is too large"):
		return ErrRowTooLarge
	case strings.Contains(text, "size limit") || code == "UnsupportedResultException" && strings.Contains(text, "too large"):
		return ErrTooLarge
	}
	return nil
}

// A conn implements driver.Conn.
type conn struct {
	connector   *Connector
	transaction *string // nil: none
}

// Prepare implements driver.Conn. Statements cannot be prepared.
func (c *conn) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }

// Close implements driver.Conn.
func (c *conn) Close() error { return c.Rollback() }

// Begin implements driver.Conn.
func (c *conn) Begin() (driver.Tx, error) { return nil, errors.ErrUnsupported }

// BeginTx begins a transaction. It must be read-only and its isolation that of repeatable reads.
func (c *conn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if !o.ReadOnly || sql.IsolationLevel(o.Isolation) != sql.LevelRepeatableRead {
		return nil, fmt.Errorf("transactions of the Data API are read-only, with repeatable reads: %w", errors.ErrUnsupported)
	}
	x := c.connector
	out, err := call(ctx, x, func(ctx context.Context) (*rdsdata.BeginTransactionOutput, error) {
		return x.client.BeginTransaction(ctx, &rdsdata.BeginTransactionInput{
			ResourceArn: &x.config.Cluster, SecretArn: &x.config.Secret, Database: &x.config.Database,
		})
	})
	if err != nil {
		return nil, fmt.Errorf("begin a transaction: %w", err)
	}
	if aws.ToString(out.TransactionId) == "" {
		return nil, fmt.Errorf("begin a transaction: the reply has no ID: %w", assay.ErrUnavailable)
	}
	c.transaction = out.TransactionId
	if x.config.MySQL { // where repeatable reads are the default, and the mode cannot be set in a transaction
		return c, nil
	}
	if _, err := c.execute(ctx, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY", nil); err != nil {
		return nil, errors.Join(err, c.Rollback())
	}
	return c, nil
}

// Commit implements driver.Tx. There is nothing to commit.
func (c *conn) Commit() error { return c.Rollback() }

// rollbackTimeout bounds the end of a transaction, which otherwise ends by itself after three minutes.
const rollbackTimeout = 10 * time.Second

// Rollback implements driver.Tx.
func (c *conn) Rollback() error {
	if c.transaction == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), rollbackTimeout)
	defer cancel()
	x := c.connector
	_, err := x.client.RollbackTransaction(ctx, &rdsdata.RollbackTransactionInput{
		ResourceArn: &x.config.Cluster, SecretArn: &x.config.Secret, TransactionId: c.transaction,
	})
	c.transaction = nil
	if err = x.failed(ctx, err); errors.Is(err, errExpired) {
		return nil
	}
	return err
}

// execute makes a request for a statement.
func (c *conn) execute(ctx context.Context, statement string, parameters []types.SqlParameter) (*rdsdata.ExecuteStatementOutput, error) {
	x := c.connector
	out, err := call(ctx, x, func(ctx context.Context) (*rdsdata.ExecuteStatementOutput, error) {
		return x.client.ExecuteStatement(ctx, &rdsdata.ExecuteStatementInput{
			ResourceArn: &x.config.Cluster, SecretArn: &x.config.Secret, Database: &x.config.Database,
			Sql: &statement, Parameters: parameters, TransactionId: c.transaction, IncludeResultMetadata: true,
		})
	})
	if err != nil {
		return nil, err
	}
	for _, record := range out.Records {
		if len(record) != len(out.ColumnMetadata) {
			return nil, fmt.Errorf("a row has %d of %d columns: %w", len(record), len(out.ColumnMetadata), assay.ErrUnavailable)
		}
	}
	return out, nil
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	r := &rows{ctx: ctx, conn: c, query: query}
	for _, a := range args {
		p, err := parameterOf(a)
		if err != nil {
			return nil, err
		}
		r.parameters = append(r.parameters, p)
	}
	if err := r.read(); err != nil {
		return nil, err
	}
	return r, nil
}

// rows implements driver.Rows.
type rows struct {
	ctx        context.Context
	conn       *conn
	query      string
	parameters []types.SqlParameter

	columns []column
	records [][]types.Field // not returned yet
	offset  int             // of the next page
	last    bool            // there is no next page
}

type column struct{ name, kind string }

// read reads the first or the next page.
func (r *rows) read() error {
	statement, page := r.query, int(r.conn.connector.page.Load())
	if r.conn.transaction != nil {
		statement = fmt.Sprintf("%s LIMIT %d OFFSET %d", r.query, page, r.offset)
	}
	out, err := r.conn.execute(r.ctx, statement, r.parameters)
	if err != nil {
		return r.again(page, err)
	}
	if r.columns == nil {
		for _, m := range out.ColumnMetadata {
			name := aws.ToString(m.Label)
			if name == "" {
				name = aws.ToString(m.Name)
			}
			r.columns = append(r.columns, column{name, strings.ToLower(aws.ToString(m.TypeName))})
		}
	}
	if len(out.ColumnMetadata) != len(r.columns) {
		return fmt.Errorf("the pages of a query have different columns: %w", assay.ErrUnavailable)
	}
	r.records = out.Records
	r.offset += len(out.Records)
	r.last = r.conn.transaction == nil || len(out.Records) < page
	return nil
}

// again marks the error of a page as one that may not last if the transaction has to be begun again,
// with smaller pages if this one was too large. The service ends a transaction with such an error.
func (r *rows) again(page int, err error) error {
	if r.conn.transaction == nil {
		return err
	}
	smaller := errors.Is(err, ErrTooLarge) && page > minPage
	if smaller {
		r.conn.connector.page.CompareAndSwap(int64(page), int64(max(minPage, page/8)))
	}
	if smaller || errors.Is(err, errExpired) {
		return &source.TransientError{After: time.Millisecond, Err: err}
	}
	return err
}

// Columns implements driver.Rows.
func (r *rows) Columns() []string {
	names := make([]string, len(r.columns))
	for i, c := range r.columns {
		names[i] = c.name
	}
	return names
}

// Close implements driver.Rows.
func (r *rows) Close() error { return nil }

// Next implements driver.Rows.
func (r *rows) Next(dest []driver.Value) error {
	if len(r.records) == 0 && !r.last {
		if err := r.read(); err != nil {
			return err
		}
	}
	if len(r.records) == 0 {
		return io.EOF
	}
	record := r.records[0]
	r.records = r.records[1:]
	for i, f := range record {
		v, err := valueOf(f, r.columns[i].kind)
		if err != nil {
			return fmt.Errorf("column %s: %w", r.columns[i].name, err)
		}
		dest[i] = v
	}
	return nil
}
