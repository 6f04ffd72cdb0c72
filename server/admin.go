package server

import "slices"

// adminRoutes are about sources, reviews, evaluations, audits and administration.
func adminRoutes() []Route {
	return slices.Concat(
		openapiRoutes(), sourceRoutes(), vectorRoutes(), reviewRoutes(), policyRoutes(), statsRoutes(), auditRoutes(), governanceRoutes(),
		limitRoutes(), stopRoutes(), recordRoutes(), canaryRoutes(), egressRoutes(), webhookRoutes(), keyRoutes(), evaluationRoutes(),
	)
}

// A namedIn is a request about the thing with a name.
type namedIn struct {
	Name string `path:"name"`
}

// A removeIn is a request to remove the thing with a name.
type removeIn struct {
	Name   string `path:"name"`
	Reason string `query:"reason"` // for the audit log
}
