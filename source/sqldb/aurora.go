package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/egress"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/sqldb/rdsdata"
)

// The schemes of the targets of Aurora.
const (
	auroraPostgres = "aurora-postgres"
	auroraMySQL    = "aurora-mysql"
)

// Aurora returns the kind of source that reads a database of Amazon Aurora through the RDS Data API.
func Aurora() source.Kind {
	k := Kind()
	k.Name, k.Short, k.Target = "aurora", "rows of Amazon Aurora, through the RDS Data API", "aurora-postgres:CLUSTER-ARN/DB or aurora-mysql:CLUSTER-ARN/DB"
	k.Help = `Reads one document from each row of a query, as the kind sql does, without a connection to the
network of the database. A row has at most 64 KB: one with more text is not read. Without
access-key the credentials are those of the AWS configuration: environment, profile or role.
The account of the secret needs no more than the right to read.`
	k.Options = append(k.Options,
		source.Option{Name: "secret", Help: "ARN of the secret in AWS Secrets Manager that has the user and the password"},
		source.Option{Name: "endpoint", Help: "URL of the Data API other than that of the cluster's region"},
		source.AllowPrivateOption,
	)
	k.Credentials = []source.Credential{
		{Name: "access-key", Env: "AWS_ACCESS_KEY_ID", Help: "access key ID", Optional: true},
		{Name: "secret-key", Env: "AWS_SECRET_ACCESS_KEY", Help: "secret access key", Optional: true},
		{Name: "session-token", Env: "AWS_SESSION_TOKEN", Help: "token of temporary keys", Optional: true},
	}
	k.Hosts = egress.AWSFixed().Strings()
	k.Absolute, k.Open = nil, openAurora
	return k
}

// auroraTarget matches the target of a source.
//
// Source: AWS, RDS Data API Reference, ExecuteStatement; ARNs of clusters in the Amazon Aurora User
// Guide, "Amazon Resource Names (ARNs) in Amazon RDS".
var auroraTarget = lazyregexp.New(`^(aurora-postgres|aurora-mysql):(arn:aws[a-z-]*:rds:([a-z0-9-]+):[0-9]{12}:cluster:[A-Za-z0-9-]+)/([^/?#\s]{1,64})$`)

var secretARN = lazyregexp.New(`^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:\S+$`)

func openAurora(ctx context.Context, c source.Config) (source.Source, error) {
	t, err := newTable(c)
	if err != nil {
		return nil, err
	}
	c = t.config
	m := auroraTarget.FindStringSubmatch(c.Target)
	endpoint := c.Options["endpoint"]
	u, err := url.Parse(endpoint)
	switch {
	case m == nil:
		return nil, fmt.Errorf("target %q is not aurora-postgres:CLUSTER-ARN/DB or aurora-mysql:CLUSTER-ARN/DB: %w", c.Target, assay.ErrInvalid)
	case !secretARN.MatchString(c.Options["secret"]):
		return nil, fmt.Errorf("option secret is not the ARN of a secret in AWS Secrets Manager: %w", assay.ErrInvalid)
	case endpoint != "" && (err != nil || u.Host == "" || u.User != nil):
		return nil, fmt.Errorf("option endpoint is not the URL of a service: %w", assay.ErrInvalid)
	}
	sdk, err := awsConfig(ctx, c, m[3])
	if err != nil {
		return nil, err
	}
	t.dialect = dialect{address: c.Target, open: `"`, close: `"`, parameter: ":p1", snapshot: true}
	if m[1] == auroraMySQL {
		t.dialect.open, t.dialect.close = "`", "`"
	}
	t.use(sql.OpenDB(rdsdata.NewConnector(rdsdata.Config{
		AWS: sdk, Source: c, Endpoint: endpoint, Cluster: m[2], Secret: c.Options["secret"], Database: m[4], MySQL: m[1] == auroraMySQL,
	})))
	return t, nil
}

// awsConfig returns the region and the credentials: the keys of the source or, without one, those of
// the AWS configuration, which are read at the first request.
func awsConfig(ctx context.Context, c source.Config, region string) (aws.Config, error) {
	values := map[string]string{}
	for _, name := range []string{"access-key", "secret-key", "session-token"} {
		value, err := c.Credential(name)
		if err != nil {
			return aws.Config{}, err
		}
		values[name] = value
	}
	if values["access-key"] != "" {
		keys := credentials.NewStaticCredentialsProvider(values["access-key"], values["secret-key"], values["session-token"])
		return aws.Config{Region: region, Credentials: keys}, nil
	}
	within := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.DialContext, t.Proxy = c.Dial, nil
		if own, ok := c.HTTP.Transport.(*http.Transport); ok {
			t.DialContext, t.Proxy = own.DialContext, own.Proxy
		}
	})
	loaded, err := config.LoadDefaultConfig(ctx, config.WithRegion(region), config.WithHTTPClient(within))
	if err != nil {
		return aws.Config{}, fmt.Errorf("read the AWS configuration: %s: %w", strings.TrimSpace(err.Error()), assay.ErrInvalid)
	}
	return loaded, nil
}
