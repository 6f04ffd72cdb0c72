package egress

import (
	"os"
	"strings"
)

// AWSFixed returns the rules for the hosts of AWS, and for the addresses that give credentials to
// programs on AWS.
//
// Source: AWS, "AWS service endpoints", "Use the Instance Metadata Service", "Container credential
// provider" and "EKS Pod Identity".
func AWSFixed() List {
	return MustRules(
		"*.amazonaws.com:443", "*.amazonaws.com.cn:443", "*.api.aws:443", "*.signin.aws.amazon.com:443",
		"169.254.169.254", "169.254.170.2", "169.254.170.23", "fd00:ec2::254", "fd00:ec2::23",
	)
}

// AWSHosts returns the rules for the hosts that the environment of AWS's tools names.
func AWSHosts() List {
	hosts := List{}
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		endpoint := strings.HasPrefix(name, "AWS_ENDPOINT_URL") || name == "AWS_CONTAINER_CREDENTIALS_FULL_URI" || name == "AWS_EC2_METADATA_SERVICE_ENDPOINT"
		if r, ok := HostOf(value); ok && endpoint {
			hosts = append(hosts, r)
		}
	}
	return hosts
}
