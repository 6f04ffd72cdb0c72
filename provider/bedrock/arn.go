package bedrock

import (
	"fmt"
	"strings"

	"github.com/assay-rag/assay"
)

// An arn is the name of an AWS resource: arn:partition:bedrock:region:account:kind/id.
type arn struct {
	partition, region, account string
	kind, id                   string // "knowledge-base", "ABCDEFGHIJ"
}

// parseARN parses an ARN of Bedrock.
func parseARN(s string) (arn, error) {
	parts := strings.SplitN(s, ":", 6)
	if len(parts) != 6 || parts[0] != "arn" || parts[2] != "bedrock" || parts[1] == "" {
		return arn{}, fmt.Errorf("%q is not an ARN of Amazon Bedrock (arn:aws:bedrock:REGION:ACCOUNT:KIND/ID): %w", s, assay.ErrInvalid)
	}
	kind, id, ok := strings.Cut(parts[5], "/")
	if !ok || kind == "" || id == "" || strings.ContainsAny(s, "*? \t\n\"") {
		return arn{}, fmt.Errorf("%q does not name one resource of Amazon Bedrock (arn:aws:bedrock:REGION:ACCOUNT:KIND/ID): %w", s, assay.ErrInvalid)
	}
	return arn{partition: parts[1], region: parts[3], account: parts[4], kind: kind, id: id}, nil
}

func (a arn) String() string {
	return fmt.Sprintf("arn:%s:bedrock:%s:%s:%s/%s", a.partition, a.region, a.account, a.kind, a.id)
}

// idOf returns the ID of a resource, given its ID or ARN.
func idOf(name, kind string) (string, error) {
	if !strings.HasPrefix(name, "arn:") {
		if name == "" || strings.ContainsAny(name, "*?:/ \t\n\"") {
			return "", fmt.Errorf("%q is not the ID of a %s: %w", name, kind, assay.ErrInvalid)
		}
		return name, nil
	}
	a, err := parseARN(name)
	if err != nil {
		return "", err
	}
	if a.kind != kind {
		return "", fmt.Errorf("%q is the ARN of a %s, want a %s: %w", name, a.kind, kind, assay.ErrInvalid)
	}
	return a.id, nil
}

// partitionOf returns the AWS partition of a region.
func partitionOf(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	case strings.HasPrefix(region, "eusc-"):
		return "aws-eusc"
	}
	return "aws"
}

// foundationARN returns the ARN of a foundation model in a region.
func foundationARN(region, model string) string {
	return arn{partition: partitionOf(region), region: region, kind: "foundation-model", id: model}.String()
}
