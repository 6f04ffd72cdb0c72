package ui

// A duty is a demand of a regulation or standard, and what shows that it is met. The words are those of
// docs/governance.md, which has all of them, with what remains the deployer's.
type duty struct {
	Of, Demand, By string
	Name, Path     string // the page that shows it
	Call           string // the method that it needs, if auditors may lack the right to it
}

var duties = []duty{
	{"EU AI Act, 12(1) Record-keeping", "automatic recording of events over the system's lifetime", "each step of each run, each decision and each administrative act is a leaf of an append-only Merkle log, stored in the transaction of what it records", "Audit log", "/governance/log", ""},
	{"EU AI Act, 12(2)", "traceability of situations of risk and of changes; monitoring", "runs replay from their journals; versions of models, prompts, index and documents are in the records", "Runs", "/governance/runs", ""},
	{"EU AI Act, 13(3)", "instructions for use: purpose, accuracy, limits, oversight measures", "measured accuracy with intervals, known limits", "Evaluation", "/evaluations", ""},
	{"EU AI Act, 14(1–3) Human oversight", "persons can oversee the system effectively", "a review gate by policy, which fails closed", "Reviews", "/reviews", "Reviews"},
	{"EU AI Act, 14(4)(b)", "awareness of automation bias", "override rate and dwell times, with quick decisions flagged", "Figures", "#figures", ""},
	{"EU AI Act, 14(4)(d, e)", "to disregard, override, and stop", "reject, edit; a stop for a tenant or for all ends runs with their best verified part", "Stop", "/governance/stop", "Stops"},
	{"ISO/IEC 42001", "monitoring of autonomous behaviour in operation", "iterations with mean and 99th percentile, limits hit, stops, drift", "Figures", "#figures", ""},
	{"ISO/IEC 42001", "audit of what the system did with its tools", "calls by week, anomalies, refused calls, each with its runs", "Tool calls", "#table-tools", ""},
	{"ISO/IEC 42001", "the rate at which people overrule it", "override rate by month", "Overrides", "#table-overrides", ""},
	{"ISO/IEC 42001, A.6.2.8", "event logs", "the audit log and its checkpoints, checkable without the data", "Checkpoints", "/governance/checkpoints", ""},
	{"NIST AI RMF, Govern 1.7", "levels of autonomy are documented and managed", "the boundary above, enforced in code; policies decide what waits for a person, and every change of one is an act", "Audit log", "/governance/log?kind=policy.", ""},
}
